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

AT_ONCE: Final = 50
"""Events that a watcher is told at a time, fifty times a second: more than anybody reads. The newest are told."""
BEHIND_BYTES: Final = 256 * 1024
"""Unread bytes at which a watcher is passed over."""

Shown = tuple[Event, bytes]
"""An event as it goes into an event stream."""


class Group:
    """Events that happened together, numbered in order, written once for all watchers.

    PERF: forty watchers of a busy daemon would otherwise cost it a fifth of its calls.
    """

    def __init__(self, happened: Sequence[Event]) -> None:
        self.shown: list[Shown] = [(event, events.as_sse(event.sequence, events.encode(event))) for event in happened]
        self.first = happened[0].sequence
        self.newest = happened[-1].sequence
        self._whole: bytes | None = None

    def whole(self) -> bytes:
        """What a watcher of everything is told."""
        if self._whole is None:
            self._whole = written(self.shown, 0)
        return self._whole


def written(shown: Sequence[Shown], missed_from: int, at_once: int = AT_ONCE) -> bytes:
    """Write events, the newest where they are too many, after a gap for what is not told of them or was missed before.

    Args:
        shown: at least one event.
        missed_from: the first number that was missed before them, or 0.
        at_once: how many are told.
    """
    told = shown[-at_once:]
    if len(told) < len(shown):
        missed_from = missed_from or shown[0][0].sequence
    pieces = [encoded for _, encoded in told]
    if missed_from:
        last = told[0][0].sequence - 1
        pieces.insert(0, events.as_sse(last, events.encode(events.gap(missed_from, last))))
    return b"".join(pieces)


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

    def tell(self, group: Group) -> bool:
        """Tell the wanted ones of a group; False when the watcher has left."""
        everything = self.wanted == events.ALL and self.seen < group.first
        taken = group.shown if everything else [shown for shown in group.shown if self._takes(shown[0])]
        self.seen = max(self.seen, group.newest)
        if not taken:
            return True
        if self.outlet.unsent() > BEHIND_BYTES:
            self._missed_from = self._missed_from or taken[0][0].sequence
            return True
        missed_from, self._missed_from = self._missed_from, 0
        return self.outlet.emit(group.whole() if everything and not missed_from else written(taken, missed_from))

    def _takes(self, event: Event) -> bool:
        return event.sequence > self.seen and self.wanted.takes(event)
