"""The system call ``openat2``, which no library wraps: opening a path that must not leave a folder. Knows no policy."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from typing import Final

RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_NO_SYMLINKS: Final = 0x04
RESOLVE_BENEATH: Final = 0x08

_NUMBER: Final = 437
"""On every architecture but Alpha, where it is something else."""
_TRIES: Final = 64


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


def openat2(folder: int, path: str, flags: int, *, links: bool = True) -> int:
    """Open a path below the folder that ``folder`` is a handle of; the kernel refuses every way out of it.

    Args:
        folder: a descriptor.
        path: relative to it.
        flags: as for ``os.open``; close-on-exec is added.
        links: follow symbolic links that stay inside.

    Raises:
        OSError: ``EXDEV`` where the path leads out, ``EAGAIN`` where it was renamed under us too often.
    """
    resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (0 if links else RESOLVE_NO_SYMLINKS)
    how = _How(flags | os.O_CLOEXEC, 0, resolve)
    encoded = os.fsencode(path)
    for _ in range(_TRIES):
        descriptor: int = _syscall(
            ctypes.c_long(_NUMBER),
            ctypes.c_int(folder),
            ctypes.c_char_p(encoded),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if descriptor >= 0:
            return descriptor
        # Something was renamed anywhere while ``..`` of a link was looked up: the kernel wants to be asked again.
        if (number := ctypes.get_errno()) not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(number, os.strerror(number), path)


def available() -> bool:
    """Whether this system has the call, and lets us make it."""
    if sys.platform != "linux" or os.uname().machine == "alpha":
        return False
    try:
        os.close(openat2(_here(), ".", os.O_PATH))
    except OSError:
        return False
    return True


def _here() -> int:
    return -100  # AT_FDCWD
