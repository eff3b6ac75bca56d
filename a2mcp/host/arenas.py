"""How many heaps the C library keeps for the daemon's threads.

By itself glibc gives each thread a heap of its own, up to eight a processor, and hands little of any back: after a load
of 64 clients that was 10 of 70 MB, for threads of which one runs at a time.
"""

from __future__ import annotations

import contextlib

_M_ARENA_MAX = -8
"""From glibc's ``malloc.h``."""


def share() -> None:
    """Let all threads that start from now on share one heap. Nothing where the C library has no such switch."""
    import ctypes  # noqa: PLC0415 - two milliseconds that no command of the operator needs

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
