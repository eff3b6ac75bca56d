"""``models.yml``: finds it, distrusts it, and reads it when it has changed.

Owns the file; what is in it is ``modelsform``'s, which a daemon without the file does not even load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2mcp.config import own
from a2mcp.inference.rows import Catalogue

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


class ModelsFile:
    """The file, read anew when it has changed.

    Args:
        path: where it is, or would be.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: tuple[int, int, int] | None = (0, 0, 0)

    def read(self, apis: Collection[str]) -> Catalogue | None:
        """Read what it says; nothing when there is no file, and None when it is as it was.

        Args:
            apis: the wire formats that somebody speaks.

        Raises:
            UnusableFile: it cannot be read or trusted, or says something wrong; the text names the line.
        """
        before, self._last = self._last, _stamp(self._path)
        if self._last == before:
            return None
        warnings: list[str] = []
        raw = own.read(self._path, warnings, mend=True, elsewhere="copy it", seen="Replace its keys")
        if raw is None:
            return Catalogue()
        from a2mcp.config.modelsform import catalogue  # noqa: PLC0415 - for those who have models

        return catalogue(self._path, raw, apis, warnings)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
