"""Deadlines of one loop: a heap of moments and what is to be done at them. Knows no selector and no command."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.clock import Clock

_SWEEP_FROM: Final = 64
"""Fewer cancelled entries than this are not worth a sweep."""


class Timer:
    """One deadline; cancelling it twice or after it fired is harmless."""

    __slots__ = ("_timers", "call")

    def __init__(self, timers: Timers, call: Callable[[], None]) -> None:
        self._timers = timers
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Make sure that nothing happens at the deadline any more."""
        if self.call is not None:
            self.call = None
            self._timers.forget_one()


class Timers:
    """A heap of deadlines, measured with the given clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._cancelled = 0

    def at(self, moment: float, call: Callable[[], None]) -> Timer:
        """Call ``call`` once the monotonic clock has reached ``moment``."""
        timer = Timer(self, call)
        heapq.heappush(self._heap, (moment, next(self._order), timer))
        return timer

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call ``call`` in ``seconds``."""
        return self.at(self._clock.monotonic() + seconds, call)

    def timeout(self) -> float | None:
        """Seconds until something is due, or ``None`` when nothing ever is."""
        while self._heap and self._heap[0][2].call is None:
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return max(0.0, self._heap[0][0] - self._clock.monotonic()) if self._heap else None

    def fire(self) -> None:
        """Do everything that is due."""
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            timer = heapq.heappop(self._heap)[2]
            call, timer.call = timer.call, None
            if call is None:
                self._cancelled -= 1
            else:
                call()

    def forget_one(self) -> None:
        """Count a cancelled entry; sweep once most of the heap is made of them.

        PERF: a command of 1 ms cancels a deadline 50 s away; without the sweep those would pile up.
        """
        self._cancelled += 1
        if self._cancelled > _SWEEP_FROM and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].call is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0
