"""State on disk: how a file is replaced as a whole, and how one is read without hanging or flooding.

Everything the product writes over goes through ``write_atomic``: a temporary file beside the target, fsync, rename,
fsync of the folder. Whoever looks sees the old bytes or the new ones. Knows nothing of text, tools or settings; errors
are ``OSError`` and the caller finds the words.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEMP_PREFIX: Final = ".a2mcp-"
"""How the name of every temporary file begins. Short and free of the target's name, which may fill all 255 bytes."""

_FIRST_PIECE = 1 << 16
_PIECE = 1 << 20
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


def write_atomic(
    path: Path,
    data: bytes,
    *,
    mode: int | None = None,
    sync: bool = True,
    check: Callable[[], None] | None = None,
) -> None:
    """Replace the file at ``path``, or make it, so that it is never seen half written.

    A symbolic link at ``path`` is itself replaced: a caller who wants it followed resolves it.

    Args:
        path: the file; its folder must exist.
        data: all of the new content.
        mode: permission bits. None keeps an existing file's, with its owner and attributes; a new one gets the umask.
        sync: wait until the disk has it. False is for files whose loss in a power cut costs nothing.
        check: called right before the rename; what it raises leaves the target as it was.

    Raises:
        OSError: the target is as it was and no temporary file is left.
    """
    old = _existing(path) if mode is None else None
    temporary = path.parent / f"{TEMP_PREFIX}{secrets.token_hex(8)}.tmp"
    # The kernel applies the umask to a new file at birth; any other is widened once content and owner are right.
    descriptor = os.open(temporary, _CREATE, 0o666 if mode is None and old is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb", buffering=0):
            _fill(descriptor, data)
            _dress(descriptor, path, old, mode)
            if sync:
                os.fsync(descriptor)
        if check:
            check()
        temporary.rename(path)
    except BaseException:
        _drop(temporary)
        raise
    if sync:
        sync_folder(path.parent)


def overwrite(descriptor: int, data: bytes) -> None:
    """Put new content into an open file without changing which file it is, for what a rename would tear apart.

    Not atomic for a reader at the same moment. What can fail early is made to: room for growth is reserved before the
    first byte changes, and a write that fails puts the old bytes back.

    Args:
        descriptor: open for reading and writing.
        data: all of the new content.

    Raises:
        OSError: the content is as it was.
    """
    size = os.fstat(descriptor).st_size
    old = _read_all(descriptor, size)
    try:
        if len(data) > size:
            os.posix_fallocate(descriptor, size, len(data) - size)
        _put_back(descriptor, data)
        os.fsync(descriptor)
    except BaseException:
        with contextlib.suppress(OSError):
            _put_back(descriptor, old)
        raise


def sync_folder(folder: Path) -> None:
    """Make renames and new names in ``folder`` survive a power cut.

    Never raises: the content is already in place, and an error here would report a write that happened as one that did
    not.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def open_regular(path: Path) -> tuple[int, os.stat_result]:
    """Open a regular file for reading, without ever waiting for it.

    The kind is looked at before the open, because opening some devices does something (a tape rewinds, a watchdog is
    armed), and again after it, because the name may have changed hands in between.

    Returns:
        The descriptor, which the caller closes, and its status.

    Raises:
        IsADirectoryError: it is a folder.
        OSError: ``EINVAL`` with the kind in words for anything else that is not a regular file; else as the system
            says.
    """
    require_regular(path.stat(), path)
    descriptor = os.open(path, _READ)
    try:
        status = os.fstat(descriptor)
        require_regular(status, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


def read_up_to(descriptor: int, limit: int) -> bytes:
    """Read at most ``limit`` bytes from where the descriptor stands.

    Trusts what arrives, not ``st_size``: that is 0 in ``/proc`` and stale for a file that grows. A source that has
    nothing to give now (``EAGAIN``) counts as ended.

    PERF: memory for a whole piece is taken before anything is read. A large one is mapped from the system and given
    back each time, so a small file is not asked for with one: that took half of a ``read``.
    """
    pieces: list[bytes] = []
    left, size = limit, _FIRST_PIECE
    while left > 0:
        try:
            piece = os.read(descriptor, min(left, size))
        except BlockingIOError:
            break
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
        size = _PIECE if len(piece) == size else _FIRST_PIECE
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def read_bounded(path: Path, limit: int) -> bytes:
    """Read a whole regular file that must not be larger than ``limit`` bytes.

    Raises:
        OSError: ``EFBIG`` when it is larger; else as ``open_regular``.
    """
    descriptor, _ = open_regular(path)
    try:
        data = read_up_to(descriptor, limit + 1)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes", str(path))
    return data


def require_regular(status: os.stat_result, path: Path) -> None:
    """Refuse what is not a regular file.

    Raises:
        IsADirectoryError: it is a folder.
        OSError: ``EINVAL`` with the kind in words.
    """
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, f"is a {kind_of(status.st_mode)}, not a regular file", str(path))


def kind_of(mode: int) -> str:
    """Say in words what ``st_mode`` is: ``FIFO``, ``socket``, ``character device``."""
    kinds = {
        stat.S_IFREG: "regular file",
        stat.S_IFDIR: "folder",
        stat.S_IFLNK: "symbolic link",
        stat.S_IFIFO: "FIFO",
        stat.S_IFSOCK: "socket",
        stat.S_IFCHR: "character device",
        stat.S_IFBLK: "block device",
    }
    return kinds.get(stat.S_IFMT(mode), "special file")


def _existing(path: Path) -> os.stat_result | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _drop(temporary: Path) -> None:
    with contextlib.suppress(OSError):
        temporary.unlink()


def _fill(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _put_back(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    _fill(descriptor, data)
    os.ftruncate(descriptor, len(data))


def _read_all(descriptor: int, size: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return read_up_to(descriptor, size)


def _dress(descriptor: int, path: Path, old: os.stat_result | None, mode: int | None) -> None:
    if mode is not None:
        os.fchmod(descriptor, mode)
    elif old is not None:
        kept = _take_owner(descriptor, old)
        _take_attributes(descriptor, path)
        bits = stat.S_IMODE(old.st_mode)
        # SECURITY: set-id bits make sense for the old owner only.
        os.fchmod(descriptor, bits if kept else bits & 0o777)


def _take_owner(descriptor: int, old: os.stat_result) -> bool:
    ours = os.fstat(descriptor)
    if (ours.st_uid, ours.st_gid) == (old.st_uid, old.st_gid):
        return True
    try:
        os.fchown(descriptor, old.st_uid, old.st_gid)
    except OSError:
        with contextlib.suppress(OSError):
            os.fchown(descriptor, -1, old.st_gid)
        return False
    return True


def _take_attributes(descriptor: int, path: Path) -> None:
    """Copy access lists and user attributes; not file capabilities, which a plain write would drop too."""
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        for name in os.listxattr(path, follow_symlinks=False):
            if name != "security.capability":
                with contextlib.suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(path, name, follow_symlinks=False))
