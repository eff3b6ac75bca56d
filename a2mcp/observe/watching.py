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
"""Events that a watcher is told at a time, twelve times a second: more than anybody reads. The newest are told."""
BEHIND_BYTES: Final = 256 * 1024
"""Unread bytes at which a watcher is passed over."""


class Group:
    """Events that happened together, numbered in order, each written once for all watchers.

    PERF: forty watchers of a busy daemon would otherwise cost it a fifth of its calls; and of a large group most are
    told to nobody, so none is written before it is.
    """

    def __init__(self, happened: Sequence[Event]) -> None:
        self.happened = happened
        self.first = happened[0].sequence
        self.newest = happened[-1].sequence
        self._written: dict[int, bytes] = {}
        self._whole: bytes | None = None

    def whole(self) -> bytes:
        """What a watcher of everything is told."""
        if self._whole is None:
            self._whole = self.told(self.happened, 0)
        return self._whole

    def told(self, wanted: Sequence[Event], missed_from: int) -> bytes:
        """Write events of the group, the newest where they are too many, after a gap for what is missing before them.

        Args:
            wanted: at least one of its events.
            missed_from: the first number that was missed before them, or 0.
        """
        told = wanted[-AT_ONCE:]
        if len(told) < len(wanted):
            missed_from = missed_from or wanted[0].sequence
        pieces = [self._of(event) for event in told]
        if missed_from:
            last = told[0].sequence - 1
            pieces.insert(0, events.as_sse(last, events.encode(events.gap(missed_from, last))))
        return b"".join(pieces)

    def _of(self, event: Event) -> bytes:
        written = self._written.get(id(event))
        if written is None:
            written = self._written[id(event)] = events.as_sse(event.sequence, events.encode(event))
        return written


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
        taken = group.happened if everything else [event for event in group.happened if self._takes(event)]
        self.seen = max(self.seen, group.newest)
        if not taken:
            return True
        if self.outlet.unsent() > BEHIND_BYTES:
            self._missed_from = self._missed_from or taken[0].sequence
            return True
        missed_from, self._missed_from = self._missed_from, 0
        return self.outlet.emit(group.whole() if everything and not missed_from else group.told(taken, missed_from))

    def _takes(self, event: Event) -> bool:
        return event.sequence > self.seen and self.wanted.takes(event)
