"""The events: the one that owns the chronicle, so that what happens is numbered, kept and told in one order.

Publishing never blocks and never slows a call: whoever has news leaves one message, and a full mailbox drops it and
counts it, which watchers see as a gap. The actor collects for a moment before it works, so that it wakes fifty times a
second under load and not with every call, and writes what came as one group.
"""

from __future__ import annotations

import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, assert_never

import msgspec

from a2mcp.clock import Clock, iso
from a2mcp.errors import Busy
from a2mcp.host import affinity
from a2mcp.observe.chronicle import Chronicle
from a2mcp.observe.event import WAITING, Event, Wanted
from a2mcp.observe.watching import Outlet
from actors.kit import Actor
from actors.ref import Ask, Mailbox, Message, Ref
from actors.sightings import Sightings

if TYPE_CHECKING:
    from a2mcp.protocol.exchange import Reply
    from a2mcp.protocol.response import Response

COLLECT_S: Final = 0.02
"""How long news is collected. Whoever watches sees it so much later, which is sooner than anybody blinks.

PERF: while a group is turned into events, a call waits for this thread at each actor it passes. Collected for 80 ms
under a load of 64 clients, p99 was 4 to 8 times p50; for 20 ms, 2.3 to 2.9 times. Less makes a single client's calls
wait.
"""

logger = logging.getLogger("a2mcp.observe")


class Group(Message, frozen=True):
    """Records that the audit writer has written: starts and ends of calls, and what is not a call."""

    ts: str
    at: float
    items: Sequence[Any]


class Note(Message, frozen=True):
    """Something else that happened."""

    event: Event


class Subscribe(Message, frozen=True):
    """Tell an outlet what happens from now on, and what did before."""

    outlet: Outlet
    wanted: Wanted
    after: int | None
    history: int


class Leave(Message, frozen=True):
    """A watcher has left."""

    name: int


class Tend(Message, frozen=True):
    """Keep silent streams alive."""

    now: float


class Scrape(Message, frozen=True):
    """Answer a request with the counts, as this function writes them."""

    reply: Reply
    write: Callable[[Chronicle], Response]


class GetSince(Ask[tuple[Event, ...]], frozen=True):
    """Ask for the events after a number."""

    after: int
    limit: int
    wanted: Wanted


class GetLast(Ask[tuple[Event, ...]], frozen=True):
    """Ask for the last events."""

    count: int
    wanted: Wanted


Command = Group | Note | Subscribe | Leave | Tend | Scrape | GetSince | GetLast


class State(msgspec.Struct, frozen=True):
    """What outlives the actor."""

    chronicle: Chronicle
    lost: deque[int] = msgspec.field(default_factory=deque)
    """How many events were dropped, by each who dropped some."""
    sightings: Sightings = msgspec.field(default_factory=Sightings)
    """What turns records into events, and what it remembers of calls that have not ended."""


class Events(Actor[Command]):
    """Owns the chronicle.

    Args:
        mailbox: made by ``mailbox_for``.
        state: what outlives the actor.
        notify: is given each event of a call that waits for the operator, to call for attention.
    """

    MAILBOX: ClassVar[int] = 8192
    BATCH: ClassVar[int] = 8192

    def __init__(
        self,
        mailbox: Mailbox,
        *,
        state: State,
        notify: Callable[[Event], None] | None = None,
    ) -> None:
        super().__init__(mailbox)
        self._state = state
        self._chronicle = state.chronicle
        self._notify = notify

    def take(self) -> Sequence[Any]:
        """Wait for news, then for what comes with it; no longer than watchers may wait for what is there."""
        try:
            batch = [self.mailbox.get(self._chronicle.tell_in_s())]
        except queue.Empty:
            return ()
        if isinstance(batch[0], Group | Note):
            # PERF: while this sleeps, leaving news wakes nobody.
            time.sleep(COLLECT_S)
        return self.with_more(batch)

    def handle(self, batch: Sequence[Any]) -> None:
        """Take the news between two other messages as one group."""
        self._taken = list(batch)
        happened: list[Event] = []
        while self._taken:
            item = self._taken.pop(0)
            if isinstance(item, Group):
                happened.extend(self._state.sightings.of_records(item.ts, item.at, item.items))
            elif isinstance(item, Note):
                happened.append(item.event)
            else:
                self._keep(happened)
                happened = []
                self.handle_one(item)
        self._keep(happened)
        self._chronicle.tell()

    def receive(self, message: Command) -> object:
        """Do what is not news."""
        match message:
            case Subscribe():
                self._subscribe(message)
            case Leave(name=name):
                self._chronicle.leave(name)
            case Tend(now=now):
                self._chronicle.tend(now)
            case Scrape(reply=reply, write=write):
                reply.complete(write(self._chronicle))
            case GetSince(after=after, limit=limit, wanted=wanted):
                return self._chronicle.since(after, limit, wanted)
            case GetLast(count=count, wanted=wanted):
                return self._chronicle.last(count, wanted)
            case Group() | Note():
                raise AssertionError("news is taken in groups")
            case _:
                assert_never(message)
        return None

    def on_start(self) -> None:
        """Leave the processor of the calls to the calls."""
        affinity.spread()

    def on_stop(self) -> None:
        """Let go of the file."""
        self._chronicle.store.close()

    def _subscribe(self, message: Subscribe) -> None:
        name = self._chronicle.watch(message.outlet, message.wanted, after=message.after, history=message.history)
        ref: Ref[Command] = Ref(self.mailbox)
        message.outlet.when_gone(lambda: ref.insist(Leave(name)))

    def _keep(self, happened: Sequence[Event]) -> None:
        lost = 0
        while self._state.lost:
            lost += self._state.lost.popleft()
        if not happened and not lost:
            return
        if lost:
            self._state.sightings.forget()  # What was lost may have been the ends of calls.
        try:
            self._chronicle.take(happened, lost=lost)
            if self._notify is not None:
                for event in happened:
                    if event.kind == WAITING:
                        self._notify(event)
        except Exception:  # The rim: what is observed must not end with one bad event.
            logger.exception("[a2mcp] internal error: events are lost")


# --- for whoever has news -----------------------------------------------------------------------------------------


class Publisher:
    """The way to the events for one who has news. Never waits: a full mailbox drops the news and counts it."""

    def __init__(self, events: Ref[Command], lost: deque[int], clock: Clock) -> None:
        self._events = events
        self._lost = lost
        self._clock = clock

    def __call__(self, kind: str, **facts: Any) -> None:
        """Say that something happened; the facts are those of an ``Event``."""
        self._leave(Note(Event(ts=iso(self._clock.now()), kind=kind, **facts)), 1)

    def written(self, ts: str, items: Sequence[Any]) -> None:
        """Say what the audit writer has written."""
        self._leave(Group(ts, self._clock.monotonic(), items), len(items))

    def _leave(self, news: Group | Note, count: int) -> None:
        try:
            self._events.tell(news)
        except Busy:
            self._lost.append(count)


def no_news(kind: str, **facts: Any) -> None:
    """Take news where nobody observes."""


News = Callable[..., None]
"""What somebody with news is given: a ``Publisher``, or ``no_news``."""


def watch(events: Ref[Command], outlet: Outlet, wanted: Wanted, *, after: int | None = None, history: int = 0) -> None:
    """Tell an outlet what happens until it has left.

    Raises:
        Busy: too much waits already.
    """
    events.tell(Subscribe(outlet, wanted, after, history))


def tend(events: Ref[Command], now: float) -> None:
    """Keep silent streams alive. One that finds no room is tended the next time."""
    if not events.mailbox.depth():
        events.insist(Tend(now))


def scrape(events: Ref[Command], reply: Reply, write: Callable[[Chronicle], Response]) -> None:
    """Answer a request with the counts.

    Raises:
        Busy: too much waits already.
    """
    events.tell(Scrape(reply, write))


def since(events: Ref[Command], after: int, limit: int, wanted: Wanted) -> tuple[Event, ...]:
    """Ask for the kept events after a number, oldest first; what is missing is a gap."""
    return events.ask(GetSince(after, limit, wanted), timeout=5)


def last(events: Ref[Command], count: int, wanted: Wanted) -> tuple[Event, ...]:
    """Ask for the last kept events, oldest first."""
    return events.ask(GetLast(count, wanted), timeout=5)
