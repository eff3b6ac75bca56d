"""On which processors the daemon's own threads run, and that its children have all of them.

One call passes through five threads, of which one runs at a time. Waking a thread on another processor takes three
times as long as on the same one, so the daemon keeps its threads together: measured on two processors, that makes calls
1.2 to 2 times as fast. Affinity is inherited, so whoever starts a program gives it the others back for the moment.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HAS_AFFINITY = hasattr(os, "sched_setaffinity")
_all: set[int] | None = None
"""What the process was given at its start; None while nothing is pinned."""
_one: set[int] = set()
"""What is left of it for our own threads."""


def pin() -> None:
    """Keep this thread, and those it starts from now on, on one processor. Nothing where there is only one."""
    global _all, _one  # They mirror a property of the process, of which there is one, too.
    if not _HAS_AFFINITY or _all is not None:
        return
    given = os.sched_getaffinity(0)
    if len(given) > 1:
        with contextlib.suppress(OSError):  # Some sandboxes forbid it; then everything is as it was.
            os.sched_setaffinity(0, {max(given)})
            _all, _one = given, {max(given)}


def spread() -> None:
    """Let this thread run on every processor again: what it does is not on the path of a call."""
    if _all is not None:
        _run_on(_all)


@contextlib.contextmanager
def everywhere() -> Iterator[None]:
    """Let what this thread starts inside the block run on every processor that the daemon was given."""
    given = _all
    if given is None:
        yield
        return
    _run_on(given)
    try:
        yield
    finally:
        _run_on(_one)


def _run_on(processors: set[int]) -> None:
    # Whoever manages the machine may have taken them away since the start; then things run where they may.
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, processors)
