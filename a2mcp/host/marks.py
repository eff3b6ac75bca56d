"""The mark on every process that a daemon starts: of which home it is, and for which command it runs.

It is handed down to whoever they start, and stays on a process that begins a session, forks twice or clears its
environment: it is the soft limit of real-time processor time, microseconds that no machine will live to see.
Linux only. The mark gives no right. Who sets this limit for itself has no mark any more.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import resource
from typing import TYPE_CHECKING, Final

from a2mcp.host import procfs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SET: Final = 1 << 62
_NUMBER_BITS: Final = 32
_HOME_BITS: Final = 30
_LIMIT: Final = getattr(resource, "RLIMIT_RTTIME", None)

_numbers = itertools.count(int.from_bytes(os.urandom(4), "big"))
"""From anywhere: what an earlier daemon of the same home has left bears other numbers."""
_home = _SET
"""As all our marks begin."""


def home_of(root: Path) -> int:
    """Say how the marks of a home begin. Two containers that show each other's processes may have equal paths."""
    found = root.stat()
    where = hashlib.sha256(os.fsencode(f"{found.st_dev}:{found.st_ino}:{root}")).digest()
    return _SET | int.from_bytes(where[:4], "big") >> (32 - _HOME_BITS) << _NUMBER_BITS


def begin(root: Path) -> None:
    """Mark what is started from now on as this home's, where that can be done. To be called before anything is.

    A daemon that a command has started bears the mark of that command itself: it is one of those who belong to it.
    """
    global _home  # noqa: PLW0603  # It mirrors a property of the process, of which there is one.
    _home = home_of(root)


@functools.cache
def possible() -> bool:
    """Whether what this process starts can be marked: the limit is not limited, and can be set and read.

    Tried once, before there are threads.
    """
    if _LIMIT is None or resource.getrlimit(_LIMIT)[1] != resource.RLIM_INFINITY:
        return False
    with wearing(helper()):
        return of(os.getpid()) == helper()


def fresh() -> int:
    """Make the mark of another command."""
    return _home | next(_numbers) % ((1 << _NUMBER_BITS) - 1) + 1


def helper() -> int:
    """Give the mark of what the daemon starts for itself, such as a searcher."""
    return _home


def is_helper(mark: int) -> bool:
    """Whether a process with this mark runs no command of a caller."""
    return not mark % (1 << _NUMBER_BITS)


def is_of(home: int, mark: int) -> bool:
    """Whether a process with this mark was started by a daemon of this home."""
    return home >> _NUMBER_BITS == mark >> _NUMBER_BITS


@contextlib.contextmanager
def wearing(mark: int) -> Iterator[None]:
    """Mark what is started inside the block.

    The limit is the whole process's, so there must be one block at a time: ``process.launch`` sees to that.
    """
    if _LIMIT is None:
        yield
        return
    before, hard = resource.getrlimit(_LIMIT)
    with contextlib.suppress(OSError, ValueError):  # Where somebody has set it lower, nothing can be marked.
        resource.setrlimit(_LIMIT, (mark, hard))
    try:
        yield
    finally:
        resource.setrlimit(_LIMIT, (before, hard))


def of(pid: int) -> int | None:
    """Read the mark of a process, also of a dead one that nobody has reaped; None where there is none."""
    if _LIMIT is None:
        return None
    try:
        found: int | None = resource.prlimit(pid, _LIMIT)[0]
    except PermissionError:
        limits = procfs.limit(pid, b"Max realtime timeout")
        found = None if limits is None else limits[0]
    except OSError:
        return None
    return found if found is not None and found >= _SET else None
