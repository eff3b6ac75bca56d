"""A file on its way in: written beside its place, and there at once when it is whole.

``New`` is a whole file and ``Append`` the rest of one. Both are driven by whoever receives the body: ``begin``, then
``write`` any number of times, then ``keep``; ``discard`` ends them at any point. One thread at a time, not the loop's:
each step may wait for a disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import threading
from typing import TYPE_CHECKING, Final, Protocol

from a2mcp.errors import FileRefusal
from a2mcp.files import TEMP_PREFIX
from a2mcp.protocol.response import Response
from a2mcp.xfer.conditions import validators
from a2mcp.xfer.root import RootClosed
from a2mcp.xfer.target import TEMP_SUFFIX, check_new_name

if TYPE_CHECKING:
    from a2mcp.xfer.request import Request
    from a2mcp.xfer.root import Parts, Root

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_HARD_TO_LINK: Final = frozenset({errno.EEXIST, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What ``link`` says where the name is taken, and where a file system has no links."""
_placing: Final = threading.Lock()
"""A rename takes the name whatever has it; between the look and the rename nobody else of us may come."""
_FROM: Final = re.compile(r"\s*bytes\s*=\s*([0-9]{1,18})\s*-")
_EXISTS: Final = "Forbidden: a file that is not empty has this name (the setting 'xfer.overwrite' allows replacing it)"


class Incoming(Protocol):
    """Where a body goes."""

    def begin(self) -> None:
        """Get ready.

        Raises:
            FileRefusal: it is not taken.
            OSError: it cannot be.
        """
        ...

    def write(self, data: bytes) -> None:
        """Write the next bytes.

        Raises:
            OSError: they are not all written.
        """
        ...

    def keep(self) -> Response:
        """Make it last; the answer to whoever sent it. Raises like ``begin``."""
        ...

    def discard(self) -> None:
        """Let go of it; of what was not kept nothing is left. Never raises, and may be called again."""
        ...


def incoming(asked: Request, size: int) -> Incoming:
    """Where the body of a PUT or PATCH goes.

    Raises:
        FileRefusal: nowhere.
    """
    if asked.share.is_file:
        raise FileRefusal(403, "Forbidden: one file is shared, and it is not to be written")
    if asked.method == "PATCH":
        return Append(asked)
    if asked.folder or not asked.parts:
        raise FileRefusal(403, "Forbidden: the path is that of a folder")
    return New(asked.share.root, asked.parts, overwrite=asked.options.overwrite, size=size)


class New:
    """A file that is not there until it is whole.

    Args:
        root: what it goes into.
        parts: its place.
        overwrite: it may replace a file that is not empty.
        size: how large it will be, where that is known.

    Raises:
        FileRefusal: its name is none for a new file.
    """

    def __init__(self, root: Root, parts: Parts, *, overwrite: bool, size: int = 0) -> None:
        check_new_name(parts)
        self._root = root
        self._parts = parts
        self._overwrite = overwrite
        self._size = size
        self._name = f"{TEMP_PREFIX}{secrets.token_hex(8)}{TEMP_SUFFIX}"
        self._folder = self._fd = -1

    def begin(self) -> None:
        """Look whether the place is free, and make the temporary file in the nearest folder that exists.

        Folders that are missing are made at the end: an upload that breaks off leaves none.
        """
        self._require_free()
        self._folder = _folder_for(self._root, self._parts)
        room = os.fstatvfs(self._folder)
        if self._size > room.f_bavail * room.f_frsize:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._fd = os.open(self._name, _CREATE, 0o666, dir_fd=self._folder)

    def write(self, data: bytes) -> None:
        """Write the next bytes; none once the share is closed."""
        if self._root.closed:
            raise RootClosed
        _write_all(self._fd, data)

    def keep(self) -> Response:
        """Bring it to the disk, then to its place."""
        os.fsync(self._fd)
        found = os.fstat(self._fd)
        folder = self._root.make_folders(self._parts[:-1])
        try:
            self._place(folder)
            with contextlib.suppress(OSError):
                os.fsync(folder)
        finally:
            os.close(folder)
        return Response(201, headers=validators(found).headers)

    def discard(self) -> None:
        """Remove the temporary file, if it still has its name."""
        fd, self._fd = self._fd, -1
        folder, self._folder = self._folder, -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self._name, dir_fd=folder)
            os.close(fd)
        if folder >= 0:
            os.close(folder)

    def _place(self, folder: int) -> None:
        """Give the file its name: of two uploads of one name, the first has it and the second is told."""
        try:
            os.link(self._name, self._parts[-1], src_dir_fd=self._folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _HARD_TO_LINK:
                raise
            with _placing:
                self._require_free()
                os.rename(self._name, self._parts[-1], src_dir_fd=self._folder, dst_dir_fd=folder)

    def _require_free(self) -> None:
        try:
            found = self._root.status(self._parts, links=True)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return
            if error.errno in (errno.EXDEV, errno.ELOOP):
                raise FileRefusal(403, "Forbidden: the name leads out of the share") from error
            raise
        if stat.S_ISDIR(found.st_mode):
            raise FileRefusal(403, "Forbidden: a folder has this name")
        if not stat.S_ISREG(found.st_mode) or (found.st_size and not self._overwrite):
            raise FileRefusal(403, _EXISTS)


class Append:
    """The rest of a file that is there.

    Args:
        asked: its ``X-Update-Range`` says from where on.

    Raises:
        FileRefusal: 405 without that header.
    """

    _busy: Final[set[tuple[int, int]]] = set()
    """Files that are being appended to: two at once would be written into each other."""
    _lock: Final = threading.Lock()

    def __init__(self, asked: Request) -> None:
        value = asked.header("X-UPDATE-RANGE")
        if value is None:
            raise FileRefusal(
                405, "Method Not Allowed: PATCH needs the header X-Update-Range", headers=(("Allow", "PUT"),)
            )
        self._asked = asked
        self._value = value
        self._fd = -1
        self._at = 0
        self._size = 0
        self._key: tuple[int, int] | None = None

    def begin(self) -> None:
        """Open the file and find where to go on."""
        asked = self._asked
        self._fd, found = asked.share.root.open_file(asked.parts, write=True)
        self._size = found.st_size
        self._at = self._offset(found.st_size)
        if self._at < found.st_size and not asked.options.overwrite:
            raise FileRefusal(403, _EXISTS)
        self._claim((found.st_dev, found.st_ino))

    def write(self, data: bytes) -> None:
        """Write the next bytes. What does not fit is taken back: the file is as long as it was, or whole."""
        if self._asked.share.closed:
            raise RootClosed
        try:
            _write_all(self._fd, data, self._at)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        self._at += len(data)

    def keep(self) -> Response:
        """Bring it to the disk."""
        os.fsync(self._fd)
        return Response(204, headers=validators(os.fstat(self._fd)).headers)

    def discard(self) -> None:
        """Close the file. What a client that broke off has sent stays: going on from there is what this is for."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
        with self._lock:
            self._busy.discard(self._key or (-1, -1))
        self._key = None

    def _claim(self, key: tuple[int, int]) -> None:
        with self._lock:
            if key in self._busy:
                raise FileRefusal(409, "Conflict: another client is appending to this file")
            self._busy.add(key)
            self._key = key

    def _offset(self, size: int) -> int:
        if self._value.strip().lower() == "append":
            return size
        found = _FROM.match(self._value)
        if found is None or int(found[1]) > size:
            raise FileRefusal(400, f"X-Update-Range must be 'append' or 'bytes=N-' with N up to {size}")
        return int(found[1])


def _folder_for(root: Root, parts: Parts) -> int:
    try:
        return root.nearest_folder(parts[:-1])
    except NotADirectoryError:
        raise FileRefusal(409, "Conflict: a part of the path is a file, not a folder") from None


def _write_all(fd: int, data: bytes, at: int | None = None) -> None:
    rest = memoryview(data)
    while rest:
        written = os.write(fd, rest) if at is None else os.pwrite(fd, rest, at)
        rest = rest[written:]
        at = None if at is None else at + written
