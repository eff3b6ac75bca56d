"""One open file that is only appended to, and whether it is still the one at its path.

Owns the descriptor, the mode and the mending of a torn last line. Does not know rotation, counting or what a line says.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, NoReturn

_MODE = 0o600
# SECURITY: a link planted at the path is refused, not followed. A FIFO without a reader must not hold up the start, and
# a terminal must not become ours. Reading is for the last byte only.
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_flush = getattr(os, "fdatasync", os.fsync)


class ShortWriteError(OSError):
    """The disk took only the first ``written`` bytes of what was appended."""

    written: int = 0


class LogFile:
    """A regular file, 0600, made if missing; the next line always begins on a line of its own.

    Raises:
        OSError: it cannot be opened, is a link, is not a regular file, or cannot be given its mode.
    """

    def __init__(self, path: Path) -> None:
        self._path = os.fsencode(path)
        self._fd = os.open(self._path, _FLAGS, _MODE)
        try:
            self._claim()
        except OSError:
            os.close(self._fd)
            raise

    def _claim(self) -> None:
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if stat.S_IMODE(status.st_mode) != _MODE:
            os.fchmod(self._fd, _MODE)
            status = os.fstat(self._fd)
        self._identity = (status.st_dev, status.st_ino, status.st_mode)
        self.size = status.st_size
        """Bytes in the file."""
        self._torn = self.size > 0 and os.pread(self._fd, 1, self.size - 1) != b"\n"

    @property
    def taken(self) -> int:
        """Bytes in the file, and the one that mends its last line."""
        return self.size + self._torn

    def is_ours(self) -> bool:
        """Whether the path still leads to this file, with the size and mode we left it in."""
        try:
            status = os.lstat(self._path)
        except OSError:
            return False
        return status.st_size == self.size and (status.st_dev, status.st_ino, status.st_mode) == self._identity

    def append(self, data: bytes) -> None:
        """Add whole lines with one write; after a torn line, on a fresh one.

        Raises:
            ShortWriteError: not all of it reached the file, which is of no further use then: opening it again mends it.
        """
        mend = b"\n" if self._torn else b""
        whole = mend + data if mend else data
        done = 0
        while done < len(whole):
            try:
                done += os.write(self._fd, whole[done:] if done else whole)
            except OSError as cause:
                _raise_short(cause, max(0, done - len(mend)))
        self._torn = False
        self.size += done

    def flush(self) -> None:
        """Wait until the disk has what was appended."""
        _flush(self._fd)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def _raise_short(cause: OSError, written: int) -> NoReturn:
    short = ShortWriteError(cause.errno, cause.strerror)
    short.written = written
    raise short from cause


def flush_directory(path: Path) -> None:
    """Wait until the disk has the names in a directory: a new file is lost with its name."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_counting(path: Path, target: Path) -> int:
    """Rename a file over another and tell how many lines are gone with the other; none if it could not be read.

    Raises:
        OSError: it could not be renamed; both are as they were.
    """
    with contextlib.ExitStack() as stack:
        replaced: BinaryIO | None = None
        with contextlib.suppress(OSError):
            replaced = stack.enter_context(open_to_read(target))
        path.rename(target)
        # What is renamed stays renamed: from here on nothing may look like a rotation that did not happen.
        with contextlib.suppress(OSError):
            return 0 if replaced is None else _count_lines(replaced)
    return 0


def last_lines(path: Path, size: int) -> list[bytes]:
    """The whole lines in the last ``size`` bytes of a file, and what follows the last line break.

    Raises:
        OSError: as ``open_to_read``.
    """
    with open_to_read(path) as file:
        begin = max(0, os.fstat(file.fileno()).st_size - size)
        lines = os.pread(file.fileno(), size, begin).split(b"\n")
    return lines[1:] if begin else lines


def open_to_read(path: Path) -> BinaryIO:
    """Open a file; no link that lies in its place is followed, and no FIFO's writer is waited for.

    Raises:
        OSError: it is not there, is a link or no regular file, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def _count_lines(file: BinaryIO) -> int:
    return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(64 * 1024), b""))
