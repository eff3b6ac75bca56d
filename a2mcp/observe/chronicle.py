"""The chronicle: numbers what happens, keeps it, counts it and tells those who watch.

Owns the number of the last event, the store, the counts and the watchers. Does not know where events come from. One
owner; what it tells never blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from a2mcp.observe import event as events
from a2mcp.observe.event import ALL, CALL_DONE, CALL_START, LOST, Event, Wanted
from a2mcp.observe.watching import Group, Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2mcp.clock import Clock
    from a2mcp.observe.store import Store
    from a2mcp.observe.tally import Tally
    from a2mcp.observe.watching import Outlet

MOST_REPLAYED: Final = 1000
"""Events that a watcher who comes, or comes back, is told of first; what is before them is a gap."""
TELL_S: Final = 0.08
"""Between two times that watchers are told. PERF: each is a write to each of them; nobody reads more often."""


class Chronicle:
    """Everything that was observed, as far as it is remembered.

    Args:
        store: keeps it.
        tally: counts it.
        clock: for when watchers are told again.
    """

    def __init__(self, store: Store, tally: Tally, clock: Clock) -> None:
        self.store = store
        self.tally = tally
        self._clock = clock
        self._untold: list[Event] = []
        self._tell_at = float("-inf")
        self._newest = 0
        self._complete = False
        self._watches: dict[int, Watch] = {}

    @property
    def newest(self) -> int:
        """The number of the last event. Goes on where the last daemon of this home ended."""
        self._newest = max(self._newest, self.store.newest())
        return self._newest

    @property
    def watchers(self) -> int:
        """How many watch."""
        return len(self._watches)

    def take(self, happened: Sequence[Event], *, lost: int = 0) -> None:
        """Number these events and keep them; ``lost`` came before them and could not be taken.

        Whoever watches is told at once, or with what comes in the next moment: see ``tell_in_s``.
        """
        number = self.newest + lost
        group: list[Event] = []
        for event in (*self._cut_off(happened), *happened):
            number += 1
            numbered = replace(event, sequence=number)
            group.append(numbered)
            if (event.kind, event.status) != (CALL_DONE, LOST):  # It is no call of this daemon.
                self.tally.count(numbered)
        self._newest = number
        self.tally.lost += lost
        self.store.append(group)
        if self._watches and group:
            if lost:
                self._untold.append(events.gap(group[0].sequence - lost, group[0].sequence - 1))
            self._untold += group
            self.tell()

    def tell_in_s(self) -> float | None:
        """In how many seconds ``tell`` has something to tell; None where there is nothing."""
        return max(0.0, self._tell_at - self._clock.monotonic()) if self._untold else None

    def tell(self) -> None:
        """Tell everybody what they have not been told, unless they were told a moment ago."""
        now = self._clock.monotonic()
        if not self._untold or now < self._tell_at:
            return
        told, self._untold = Group(self._untold), []
        self._tell_at = now + TELL_S
        for name, watch in list(self._watches.items()):
            if not watch.tell(told):
                self.leave(name)

    def since(self, after: int, limit: int, wanted: Wanted = ALL) -> tuple[Event, ...]:
        """The kept events after a number, oldest first; what is missing is a gap."""
        return self.store.since(after if after <= self.newest else 0, limit, wanted)

    def last(self, count: int, wanted: Wanted = ALL) -> tuple[Event, ...]:
        """The last kept events, oldest first."""
        return self.store.last(count, wanted)

    def watch(self, outlet: Outlet, wanted: Wanted, *, after: int | None, history: int) -> int:
        """Tell an outlet what happens, until it has left; how to name the watch.

        Args:
            outlet: where it goes.
            wanted: what of it.
            after: the last event that it has seen; what came since is told first. None for a watcher who is new.
            history: how many earlier events a new one is told of.
        """
        if after is None:
            earlier = self.last(min(history, MOST_REPLAYED), wanted) if history else ()
        else:
            earlier = self._missed(after, wanted)
        watch = Watch(outlet, wanted, self.newest)
        name = id(watch)
        self._watches[name] = watch
        # The comment makes the head of the stream leave at once, so that whoever watches knows that it does.
        outlet.emit(b": watching\n\n" + b"".join(events.as_sse(e.sequence, events.encode(e)) for e in earlier))
        return name

    def leave(self, name: int) -> None:
        """Stop telling a watcher."""
        self._watches.pop(name, None)

    def tend(self, now: float) -> None:
        """Keep silent streams alive."""
        for watch in self._watches.values():
            watch.outlet.tend(now)

    def _cut_off(self, happened: Sequence[Event]) -> list[Event]:
        """The ends of the calls that a daemon before this one left without any, once, before its first events."""
        if self._complete or not happened:
            return []
        self._complete = True
        begun: dict[str | None, Event] = {}
        for event in self.store.last(MOST_REPLAYED, ALL):
            if event.kind == CALL_START:
                begun[event.call] = event
            elif event.kind == CALL_DONE:
                begun.pop(event.call, None)
        return [replace(start, kind=CALL_DONE, status=LOST, ts=happened[0].ts) for start in begun.values()]

    def _missed(self, after: int, wanted: Wanted) -> tuple[Event, ...]:
        """What came after an event, the newest where it is too much."""
        start = after if after <= self.newest else 0
        from_here = max(start, self.newest - MOST_REPLAYED)
        found = self.since(from_here, MOST_REPLAYED + 1, wanted)
        return found if from_here == start else (events.gap(start + 1, from_here), *found)
