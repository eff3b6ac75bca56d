"""One watcher: what it wants, what it has seen, and how much it may be told at a time.

Owns the promise that nobody who watches holds up what is watched: a watcher that does not read fast enough is passed
over and later told, by a gap, what it missed. Does not know what carries the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from a2mcp.observe import event as events
from a2mcp.observe.event import Event, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

AT_ONCE: Final = 100
"""Events that a watcher is told at a time, twenty times a second: more than anybody reads. The newest are told."""
BEHIND_BYTES: Final = 256 * 1024
"""Unread bytes at which a watcher is passed over."""

Shown = tuple[Event, bytes]
"""An event with its JSON, which is made once for all watchers."""


class Outlet(Protocol):
    """Where a watcher's events go. Nothing here blocks."""

    def emit(self, data: bytes) -> bool:
        """Send bytes of an event stream; False when nobody takes them any more."""
        ...

    def unsent(self) -> int:
        """How many bytes wait for the reader."""
        ...

    def tend(self, now: float) -> None:
        """Keep a silent stream alive."""
        ...

    def when_gone(self, tell: Callable[[], None]) -> None:
        """Have it told when the reader has left."""
        ...


class Watch:
    """A watcher and the number of the last event that it was told of, or told that it missed."""

    __slots__ = ("_missed_from", "outlet", "seen", "wanted")

    def __init__(self, outlet: Outlet, wanted: Wanted, seen: int) -> None:
        self.outlet = outlet
        self.wanted = wanted
        self.seen = seen
        self._missed_from = 0

    def tell(self, group: Sequence[Shown], *, at_once: int = AT_ONCE) -> bool:
        """Tell the wanted ones of a group, numbered in order; False when the watcher has left."""
        taken = [shown for shown in group if shown[0].sequence > self.seen and self.wanted.takes(shown[0])]
        newest = group[-1][0].sequence if group else self.seen
        if not taken:
            self.seen = max(self.seen, newest)
            return True
        if self.outlet.unsent() > BEHIND_BYTES:
            self._miss(taken[0][0].sequence)
            self.seen = newest
            return True
        if len(taken) > at_once:
            self._miss(taken[0][0].sequence)
            taken = taken[-at_once:]
        self.seen = newest
        return self.outlet.emit(self._written(taken))

    def _miss(self, first: int) -> None:
        self._missed_from = self._missed_from or first

    def _written(self, taken: Sequence[Shown]) -> bytes:
        pieces = [events.as_sse(event.sequence, encoded) for event, encoded in taken]
        if self._missed_from:
            last = taken[0][0].sequence - 1
            pieces.insert(0, events.as_sse(last, events.encode(events.gap(self._missed_from, last))))
            self._missed_from = 0
        return b"".join(pieces)
