"""New content for a file the caller named: whose turn it is, whether it is still as it was seen, and what it keeps.

- Links are followed: the file they lead to is replaced, the link stays. A link that leads nowhere gets its file.
- A file with several names (hard links), or one that is a mount point, is overwritten in place, because a rename would
  take this name away from the others. Everything else is replaced by rename.
- Calls of this daemon on one file take turns. Other programs hold no lock of ours, so the file is compared with what
  was seen, by identity, size, times and hash, right before it is replaced. What is left is the moment between that look
  and the rename, in which another program's write is lost; POSIX has no way to close it.
- A file that its own mode protects from writing is refused, though a rename would get around that.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp import files
from a2mcp.errors import ChangedMeanwhile, ToolError
from a2mcp.host.paths import show

if TYPE_CHECKING:
    from collections.abc import Iterator

_TURN_S: Final = 30.0
_PIECE: Final = 1 << 20
_AGAIN: Final = "Read it again and repeat the call with what it holds now."


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Which file was looked at, and what it held."""

    identity: tuple[int, int]
    size: int
    times: tuple[int, int]
    sha256: str


class _Turns:
    """One lock per file, kept only while somebody holds or awaits it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[object, tuple[threading.Lock, int]] = {}

    @contextlib.contextmanager
    def take(self, key: object, shown: str) -> Iterator[None]:
        with self._guard:
            lock, users = self._held.get(key, (threading.Lock(), 0))
            self._held[key] = (lock, users + 1)
        try:
            if not lock.acquire(timeout=_TURN_S):
                raise ToolError(f"Another call has been changing {shown} for {_TURN_S:.0f} s.", hint="Try again later.")
            try:
                yield
            finally:
                lock.release()
        finally:
            self._leave(key)

    def _leave(self, key: object) -> None:
        with self._guard:
            lock, users = self._held[key]
            if users > 1:
                self._held[key] = (lock, users - 1)
            else:
                del self._held[key]


_turns: Final = _Turns()


@contextlib.contextmanager
def turn(path: Path) -> Iterator[Path]:
    """Follow the links of ``path`` and hold its file's turn among the calls of this daemon.

    Yields:
        The path of the file itself, free of links.

    Raises:
        ToolError: another call held it for too long.
        OSError: the links lead in a circle.
    """
    real = Path(os.path.realpath(path))
    key: object = real
    with contextlib.suppress(FileNotFoundError):
        status = real.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        if status.st_nlink > 1:
            # Its other names are other paths; the number of the file does not change, as it is overwritten in place.
            key = (status.st_dev, status.st_ino)
    with _turns.take(key, show(path)):
        yield real


def look(real: Path) -> Seen:
    """Take down which file this is and what it holds now.

    Raises:
        OSError: as ``files.open_regular``.
    """
    descriptor, status = files.open_regular(real)
    try:
        digest = hashlib.sha256()
        while piece := os.read(descriptor, _PIECE):
            digest.update(piece)
    finally:
        os.close(descriptor)
    return seen(status, digest.hexdigest())


def seen(status: os.stat_result, sha256: str) -> Seen:
    """Take down a file that was read by other means."""
    return Seen(
        identity=(status.st_dev, status.st_ino),
        size=status.st_size,
        times=(status.st_mtime_ns, status.st_ctime_ns),
        sha256=sha256,
    )


def put(real: Path, data: bytes, expected: Seen | None) -> None:
    """Give the file at ``real`` new content, or make it.

    Args:
        real: a path free of links, in its turn.
        data: all of the new content.
        expected: the file as it was seen; None when whatever is there may be replaced.

    Raises:
        ChangedMeanwhile: it is not as expected any more; it is left as it is.
        OSError: it is left as it was.
    """
    status = _status(real)
    if status is not None and not os.access(real, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(real))
    if status is not None and status.st_nlink > 1:
        _overwrite(real, data, expected)
        return
    try:
        files.write_atomic(real, data, check=lambda: _require_same(real, expected))
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        _overwrite(real, data, expected)


def require_hash(found: str | None, wanted: str | None, path: Path) -> None:
    """Compare with the hash the caller has seen.

    Raises:
        ChangedMeanwhile: the caller has seen another content, or the file is gone.
    """
    if wanted is None or found == wanted.lower():
        return
    now = f"its sha256 is now {found}" if found else "it does not exist now"
    raise ChangedMeanwhile(f"{show(path)} has changed meanwhile: {now}; nothing was written.", hint=_AGAIN)


def _status(real: Path) -> os.stat_result | None:
    """The status of what is there.

    Raises:
        IsADirectoryError: it is a folder.
        OSError: ``EINVAL`` when it is anything else that is not a regular file.
    """
    try:
        status = real.lstat()
    except FileNotFoundError:
        return None
    files.require_regular(status, real)
    return status


def _require_same(real: Path, expected: Seen | None) -> None:
    if expected is None:
        return
    try:
        now = None if real.is_symlink() else look(real)
    except OSError:
        now = None
    if now != expected:
        raise ChangedMeanwhile(f"{show(real)} has changed meanwhile; nothing was written.", hint=_AGAIN)


def _overwrite(real: Path, data: bytes, expected: Seen | None) -> None:
    descriptor = os.open(real, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        _require_same(real, expected)
        files.overwrite(descriptor, data)
    finally:
        os.close(descriptor)
