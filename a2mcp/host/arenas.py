"""How the C library keeps the daemon's memory: one heap for all threads, and large blocks given back.

By itself glibc gives each thread a heap of its own, up to eight a processor, and hands little of any back: after a load
of 64 clients that was 10 of 70 MB, for threads of which one runs at a time. And once a large block was freed it takes
the next one from the heap, where something small behind it keeps it: after one body of 10 MB those 10 MB stayed.
"""

from __future__ import annotations

import contextlib
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Names and numbers are those of glibc's ``malloc.h``."""

_LARGE: Final = 1 << 20
"""Bytes from which on a block is mapped by itself; setting it at all keeps glibc from raising it."""
_SPARE: Final = 2 << 20
"""Bytes at the end of the heap that are kept for what comes next."""


def share() -> None:
    """Let all threads that start from now on share one heap. Nothing where the C library has no such switch."""
    import ctypes  # noqa: PLC0415 - two milliseconds that no command of the operator needs

    with contextlib.suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
        mallopt(_M_TRIM_THRESHOLD, _SPARE)
