"""The way along a path without the kernel's fence: one component at a time, each opened without following links.

Links are read and followed here. What the names are when they are opened decides, so swapping one for a link while we
walk gains nothing: it is not followed by the kernel, and where it points is judged like any other link.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LINKS: Final = 40
"""Followed on one way; the kernel's own number."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)


@contextlib.contextmanager
def walked(root: int, root_path: str, parts: Sequence[str], *, links: bool = True) -> Iterator[tuple[int, str]]:
    """Go along ``parts`` below ``root``, to the last name before it is opened.

    Args:
        root: a handle of the folder that must not be left.
        root_path: its absolute path without links, to know an absolute link that leads back inside.
        parts: the components.
        links: follow symbolic links that stay inside.

    Yields:
        A handle of the folder in which the name is, and the name, which was no link when it was looked at. To be opened
        without following links.

    Raises:
        OSError: ``EXDEV`` where the way leads out of the folder.
    """
    way = _Way(root, root_path, links=links)
    try:
        name = way.go(parts)
        yield way.here, name
    finally:
        way.close()


class _Way:
    """Where we are, as the handles of all folders from the root on; ``..`` is the one before."""

    def __init__(self, root: int, root_path: str, *, links: bool) -> None:
        self._trail = [os.dup(root)]
        self._root = [part for part in root_path.split("/") if part]
        self._links_left = LINKS if links else 0

    @property
    def here(self) -> int:
        return self._trail[-1]

    def close(self) -> None:
        while self._trail:
            os.close(self._trail.pop())

    def go(self, parts: Sequence[str]) -> str:
        todo = [part for part in reversed(parts) if part not in ("", ".")]
        name = "."
        while todo:
            name = todo.pop()
            if name == "..":
                self._up()
                name = "."
            elif (target := self._link(name)) is not None:
                todo.extend(reversed(self._inside(target)))
                name = "."
            elif todo:
                self._trail.append(os.open(name, _FOLDER, dir_fd=self.here))
        return name

    def _up(self) -> None:
        if len(self._trail) == 1:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        os.close(self._trail.pop())

    def _link(self, name: str) -> str | None:
        try:
            target = os.readlink(name, dir_fd=self.here)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise
        if not self._links_left:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        self._links_left -= 1
        return target

    def _inside(self, target: str) -> list[str]:
        """The components of a link's target from here on; from the root on, where it is absolute."""
        parts = [part for part in target.split("/") if part not in ("", ".")]
        if not target.startswith("/"):
            return parts
        if parts[: len(self._root)] != self._root:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        while len(self._trail) > 1:
            os.close(self._trail.pop())
        return parts[len(self._root) :]
