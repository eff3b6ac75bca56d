"""What is shared: one path, and the open folder through which alone it is reached. Knows no time."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

import msgspec

from a2mcp.errors import ToolError
from a2mcp.files import kind_of, open_regular
from a2mcp.host.paths import show
from a2mcp.xfer.root import Parts, Root

PREFIX: Final = "/xfer"
"""The route."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """One shared file or folder. Closing it ends what is being transferred."""

    path: Path
    """As it was asked for, absolute."""
    is_file: bool
    root: Root
    """The folder; of a file, the one in which it is."""
    inner: Parts
    """What is shared, below ``root``: of a file its name, of a folder nothing."""

    @classmethod
    def open(cls, path: Path) -> Share:
        """Take hold of a file or a folder.

        Args:
            path: absolute; links in it are followed, now and once.

        Raises:
            ToolError: it is not there, not readable, or neither a file nor a folder.
        """
        try:
            real = path.resolve(strict=True)
            is_file = _is_file(real)
            root = Root(str(real.parent if is_file else real))
        except (OSError, ValueError, RuntimeError) as cause:
            raise _cannot_serve(path, cause) from cause
        inner = (real.name,) if is_file else ()
        return cls(path=path, is_file=is_file, root=root, inner=inner)

    @property
    def closed(self) -> bool:
        """Whether it is over."""
        return self.root.closed

    def close(self) -> None:
        """End it; what is being transferred ends too."""
        self.root.close()


def _is_file(real: Path) -> bool:
    mode = real.stat().st_mode
    if stat.S_ISDIR(mode):
        return False
    if not stat.S_ISREG(mode):
        raise OSError(0, f"is a {kind_of(mode)}, not a file or a folder")
    descriptor, _ = open_regular(real)  # Whether it can be read is better said now than to whoever downloads it.
    os.close(descriptor)
    return True


def _cannot_serve(path: Path, cause: Exception) -> ToolError:
    reason = (cause.strerror if isinstance(cause, OSError) else None) or str(cause)
    return ToolError(f"cannot serve {show(path)}: {reason}")
