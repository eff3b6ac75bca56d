"""A folder held open, and everything that is done inside it. No path, link or swap reaches anything outside.

SECURITY: nothing here takes an absolute path after the folder was opened. The kernel resolves a path beneath the handle
where it can (``openat2``), ``walk`` does elsewhere; a check followed by an open of the same name leaks to whoever swaps
links in between. Knows no HTTP; errors are ``OSError``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from functools import cache
from typing import TYPE_CHECKING, Final

from a2mcp.files import kind_of
from a2mcp.xfer import openat2
from a2mcp.xfer.walk import walked

if TYPE_CHECKING:
    from collections.abc import Iterator

Parts = tuple[str, ...]
"""The components of a path below the root; none of them is empty, ``.`` or ``..``, or holds a slash or a NUL."""

_HAS_PATH: Final = hasattr(os, "O_PATH")
_LOOK: Final = getattr(os, "O_PATH", 0)
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class RootClosed(OSError):
    """The folder is no longer shared."""

    def __init__(self) -> None:
        super().__init__(errno.ESHUTDOWN, "the share is closed")


class Root:
    """A folder, open until ``close``; any thread may use it.

    Args:
        path: its absolute path without links.
        kernel: let the kernel keep paths inside, where it can. False is for tests of the other way.

    Raises:
        OSError: it cannot be opened for reading.
    """

    def __init__(self, path: str, *, kernel: bool = True) -> None:
        self.path = path
        self._kernel = kernel and _kernel_can()
        self._lock = threading.Lock()
        self._users = 0
        self._closed = False
        self._fd = os.open(path, _FOLDER)

    @property
    def closed(self) -> bool:
        """Whether it may no longer be used."""
        return self._closed

    def close(self) -> None:
        """Let nobody in any more, and let go of the handle once the last one inside is out."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            last = not self._users
        if last:
            os.close(self._fd)

    # --- looking and reading --------------------------------------------------------------------------------------

    def status(self, parts: Parts, *, links: bool = True) -> os.stat_result:
        """The status of what is there, behind links that stay inside; never waits for a FIFO or a device."""
        with self._inside() as fd:
            if self._kernel and _HAS_PATH:
                with contextlib.suppress(_LeadsOut):
                    return _status(_beneath(fd, parts, _LOOK, links=links))
            with walked(fd, self.path, parts, links=links) as (folder, name):
                return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def open_file(self, parts: Parts, *, links: bool = True, write: bool = False) -> tuple[int, os.stat_result]:
        """Open a regular file; the descriptor, which the caller closes, and its status.

        Raises:
            IsADirectoryError: it is a folder.
            OSError: ``EINVAL`` for what is neither, before it is opened: to open some devices is to use them.
        """
        _require_regular(self.status(parts, links=links))
        fd = self._open(parts, _WRITE if write else _READ, links=links)
        try:
            found = os.fstat(fd)
            _require_regular(found)
        except BaseException:
            os.close(fd)
            raise
        return fd, found

    def open_folder(self, parts: Parts) -> int:
        """Open a folder for listing and as a base of names; the caller closes it."""
        return self._open(parts, _FOLDER)

    # --- making ---------------------------------------------------------------------------------------------------

    def nearest_folder(self, parts: Parts) -> int:
        """Open the folder ``parts``, or the nearest one above it that exists; the caller closes it."""
        for length in range(len(parts), 0, -1):
            with contextlib.suppress(FileNotFoundError):
                return self.open_folder(parts[:length])
        return self.open_folder(())

    def make_folders(self, parts: Parts) -> int:
        """Open the folder ``parts``, and make what is missing of it; the caller closes it."""
        for length in range(1, len(parts) + 1):
            self.make_folder(parts[:length], there_is_fine=True)
        return self.open_folder(parts)

    def make_folder(self, parts: Parts, *, there_is_fine: bool = False) -> None:
        """Make one folder in one that exists.

        Raises:
            FileExistsError: something has this name.
        """
        above = self.open_folder(parts[:-1])
        try:
            os.mkdir(parts[-1], dir_fd=above)
        except FileExistsError:
            if not there_is_fine:
                raise
        finally:
            os.close(above)

    # --- within ---------------------------------------------------------------------------------------------------

    def _open(self, parts: Parts, flags: int, *, links: bool = True) -> int:
        with self._inside() as fd:
            if self._kernel:
                with contextlib.suppress(_LeadsOut):
                    return _beneath(fd, parts, flags, links=links)
            with walked(fd, self.path, parts, links=links) as (folder, name):
                return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)

    @contextlib.contextmanager
    def _inside(self) -> Iterator[int]:
        """The handle, which stays this folder's for the block: its number must not become another file's meanwhile."""
        with self._lock:
            if self._closed:
                raise RootClosed
            self._users += 1
        try:
            yield self._fd
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            last = self._closed and not self._users
        if last:
            os.close(self._fd)


class _LeadsOut(Exception):
    """Beneath the handle the kernel finds no way. An absolute link may still lead back inside: ``walk`` knows."""


def _beneath(fd: int, parts: Parts, flags: int, *, links: bool) -> int:
    try:
        return openat2.openat2(fd, "/".join(parts) or ".", flags, links=links)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise _LeadsOut from None
        raise


def _status(fd: int) -> os.stat_result:
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def _require_regular(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, f"is a {kind_of(found.st_mode)}, not a regular file")


@cache
def _kernel_can() -> bool:
    return openat2.available()
