"""The events actor: nothing of a call is lost, nobody waits for it, and a dead one is replaced."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from harness import until
from living import WAIT_S, Poison, Reply, call_of

from a2mcp.clock import SystemClock
from a2mcp.observe.chronicle import Chronicle
from a2mcp.observe.event import ALL, Wanted, decode
from a2mcp.observe.store import Store
from a2mcp.observe.tally import Tally
from a2mcp.protocol.response import Response
from actors import audit, events
from actors.events import Events, Publisher, State
from actors.kit import launch
from actors.observing import Warnings
from actors.ref import Mailbox, Ref

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.observe.event import Event


class Line:
    """An outlet that remembers."""

    def __init__(self) -> None:
        self.data = b""

    def emit(self, data: bytes) -> bool:
        self.data += data
        return True

    def unsent(self) -> int:
        return 0

    def tend(self, now: float) -> None:
        self.data += b": tended\n"

    def when_gone(self, tell) -> None:
        self.leave = tell

    @property
    def events(self) -> list[Event]:
        return [decode(line[6:]) for line in self.data.split(b"\n") if line.startswith(b"data: ")]


class Room:
    def __init__(self, home: Path) -> None:
        self.noticed: list[Event] = []
        self.clock = SystemClock()
        self.state = State(Chronicle(Store(home / "events.db", clock=self.clock), Tally(), self.clock))
        self.mailbox = Events.mailbox_for("Events")
        self.ref: Ref[events.Command] = Ref(self.mailbox)
        self.news = Publisher(self.ref, self.state.lost, self.clock)
        self.launch()

    def launch(self) -> None:
        self.actor = Events(self.mailbox, state=self.state, notify=self.noticed.append)
        launch(self.actor)

    def last(self, count: int = 100, wanted: Wanted = ALL) -> tuple[Event, ...]:
        return events.last(self.ref, count, wanted)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def test_a_call_is_two_events_with_what_it_took(room: Room) -> None:
    """Issue 6, item 3."""
    call, _ = call_of("bash", b'{"command":"ls"}')
    room.news.written("t1", [audit.Start(call, room.ref, Poison())])
    room.news.written("t2", [audit.Done(call, is_error=True, response=Response(200, b"{}")), audit.GetCounts()])
    start, done = room.last()

    assert (start.kind, start.status, start.ts, start.session, start.args) == (
        "call.start", "running", "t1", "s", call.summary.args
    )  # fmt: skip
    assert (done.kind, done.status, done.call) == ("call.done", "error", call.call_id)
    assert done.seconds is not None
    assert done.seconds >= 0


def test_a_call_that_was_cancelled_says_so_and_what_is_no_call_is_a_record(room: Room) -> None:
    """Issue 6, item 3: share and tunnel changes, the operator's deeds."""
    call, _ = call_of("bash")
    room.news.written("t", [audit.Done(call, False, Response(200, b"{}"), "cancelled")])
    room.news.written("t", [audit.Event("tunnel", None, {"action": "start", "token": "x" * 200})])
    done, record = room.last()

    assert (done.status, done.seconds) == ("cancelled", None)
    assert (record.kind, record.tool) == ("record", "tunnel")
    assert b"xxxx" not in bytes(record.args)


def test_what_an_edit_changed_is_told_live(room: Room) -> None:
    """Issue 6, item 3: diffs of edits."""
    line = Line()
    events.watch(room.ref, line, ALL)
    call, _ = call_of("edit")
    body = b'{"result":{"content":[{"type":"text","text":"Changed.\\n@@ -1 +1 @@\\n-a\\n+b"}]}}'
    room.news.written("t", [audit.Done(call, False, Response(200, body))])
    until(lambda: line.events, what="the event")

    assert line.events[0].diff == "@@ -1 +1 @@\n-a\n+b"
    assert room.last()[0].diff is None


def test_a_thousand_calls_from_many_groups_are_all_there(room: Room) -> None:
    """Issue 6, item 3: no event of a call is lost from the store under load."""
    pairs = [call_of("bash")[0] for _ in range(1000)]
    for call in pairs:
        room.news.written("t", [audit.Start(call, room.ref, Poison())])
        room.news.written("t", [audit.Done(call, False, Response(200, b"{}"))])
    found = events.since(room.ref, 0, 5000, ALL)

    assert [one.sequence for one in found] == list(range(1, 2001))
    assert {one.call for one in found} == {call.call_id for call in pairs}
    assert room.state.chronicle.tally.calls == {("bash", "ok"): 1000}


def test_a_full_mailbox_drops_news_without_waiting_and_leaves_a_gap(tmp_path: Path) -> None:
    """Issue 6, item 3: publishing never blocks or slows a call."""
    full = Mailbox("Events", 1)
    state = State(Chronicle(Store(tmp_path / "events.db", clock=SystemClock()), Tally(), SystemClock()))
    news = Publisher(Ref(full), state.lost, SystemClock())
    news("session", status="opened")
    news("session", status="ended")
    news.written("t", [1, 2, 3])
    assert list(state.lost) == [1, 3]

    actor = Events(full, state=state)
    actor.handle([full.get()])
    assert state.chronicle.newest == 5
    assert state.chronicle.tally.lost == 4
    state.chronicle.store.close()


def test_a_new_actor_goes_on_where_the_dead_one_ended(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    """Issue, "Actors": a killed actor is replaced; watchers stay."""
    caplog.set_level(logging.CRITICAL)
    line = Line()
    events.watch(room.ref, line, ALL)
    room.news("session", status="opened")
    room.last()
    room.mailbox.put(Poison())
    room.actor.thread.join(WAIT_S)
    room.launch()
    room.news("session", status="ended")

    assert [one.status for one in room.last()] == ["opened", "ended"]
    until(lambda: [one.sequence for one in line.events] == [1, 2], what="both events")


def test_a_watcher_that_leaves_is_let_go(room: Room) -> None:
    """Ours: no list that only grows."""
    line = Line()
    events.watch(room.ref, line, ALL)
    room.last()
    assert room.state.chronicle.watchers == 1
    events.tend(room.ref, 1.0)
    line.leave()
    room.last()
    assert room.state.chronicle.watchers == 0
    assert line.data.endswith(b": tended\n")


def test_a_bad_event_costs_itself_only(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    """Ours: one thing that cannot be told must not end the telling."""
    call, _ = call_of("bash")
    broken = audit.Start(None, room.ref, Poison())  # type: ignore[arg-type]
    room.news.written("t", [broken, audit.Start(call, room.ref, Poison())])

    assert [one.call for one in room.last()] == [call.call_id]
    assert "could not be made" in caplog.text


def test_a_call_that_waits_calls_for_attention(room: Room) -> None:
    """Issue 6, item 4: a desktop notice."""
    room.news("approval.waiting", tool="bash")
    room.news("approval.answered", tool="bash")
    room.last()

    assert [one.kind for one in room.noticed] == ["approval.waiting"]


def test_counts_are_of_one_moment(room: Room) -> None:
    """Issue 6, item 5."""
    room.news("session", status="opened")
    reply = Reply()
    events.scrape(room.ref, reply, lambda chronicle: Response(200, b"%d" % chronicle.tally.events))  # type: ignore[arg-type]

    assert reply.response.body == b"1"


def test_warnings_are_events(room: Room) -> None:
    """Issue 6, item 2: warnings."""
    logger, handler = logging.getLogger("a2mcp.test"), Warnings(room.news)
    logger.addHandler(handler)
    logger.warning("[a2mcp] warning: the port %d is taken", 80)
    logger.info("not this")
    logger.removeHandler(handler)
    (event,) = room.last()

    assert (event.kind, event.status, bytes(event.args)) == ("warning", "warning", b'{"text":"the port 80 is taken"}')
