"""What is counted of the events: calls by tool and outcome, and how long they took.

Owns the counts and the bounds of the histogram. Does not know how they are written down.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from a2mcp.observe.event import CALL_DONE

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.observe.event import Event

BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
NOT_OURS: Final = "(unknown)"
"""Counted in place of a name that is no tool: the caller chooses it, and must not choose how much is counted."""


class Histogram:
    """Durations by their size; the last bucket is of those over every bound."""

    __slots__ = ("buckets", "total_s")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.buckets[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds


class Tally:
    """The counts since the start of the daemon.

    Args:
        is_tool: whether a name is counted by itself.
    """

    def __init__(self, is_tool: Callable[[str], bool] = lambda _name: True) -> None:
        self._is_tool = is_tool
        self.calls: dict[tuple[str, str], int] = {}
        """By tool and outcome."""
        self.durations: dict[str, Histogram] = {}
        """By tool."""
        self.events = 0
        self.lost = 0
        """Events that came faster than they could be taken."""

    def count(self, event: Event) -> None:
        """Count an event."""
        self.events += 1
        if event.kind != CALL_DONE:
            return
        named = event.tool or NOT_OURS
        tool = named if self._is_tool(named) else NOT_OURS
        key = (tool, event.status or "ok")
        self.calls[key] = self.calls.get(key, 0) + 1
        if event.seconds is not None:
            histogram = self.durations.get(tool)
            if histogram is None:
                histogram = self.durations[tool] = Histogram()
            histogram.add(event.seconds)
