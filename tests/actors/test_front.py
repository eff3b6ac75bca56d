"""The front: who is let in, who is refused, and that nothing stays in its table."""

from __future__ import annotations

import threading

import msgspec
import pytest
from living import Clock, Reply, exchange
from msgspec.structs import replace

from a2mcp.errors import Busy, Stopping
from a2mcp.http.server.connections import Connections
from a2mcp.library.shelf import Library
from a2mcp.protocol.caller import Caller
from a2mcp.protocol.response import Response
from a2mcp.protocol.statetoken import StateTokens
from a2mcp.protocol.versions.v2025_11_25 import V2025_11_25
from a2mcp.tools.registry import Registry
from actors import executor, sessions
from actors.admission import LOST_AFTER_S, RESERVE, Admission
from actors.doors import Room
from actors.front import Front, Ways
from actors.ref import Mailbox, Message, Ref

RAW = msgspec.Raw(b"{}")


class Door:
    """A front over two mailboxes that nobody reads."""

    def __init__(self, *, in_flight: int = 3, each: int | None = None, mailbox: int = 10_000) -> None:
        self.clock = Clock()
        self.sessions = Mailbox("Sessions", mailbox)
        self.executor = Mailbox("Executor", 2)
        self.audit = Mailbox("AuditWriter", mailbox)
        ways = Ways(
            sessions=Ref(self.sessions),
            audit=Ref(self.audit),
            executor=Ref(self.executor),
            inference=Ref(Mailbox("Inference", 2)),
            registry=Registry([]),
            library=Library([]),
            tokens=StateTokens("secret", self.clock),
            context_for=lambda _call: None,
        )
        room = Room(connections=Connections(1, 1), calls=in_flight, calls_each=in_flight if each is None else each)
        self.front = Front(Admission(run_calls=Ref(self.executor), room=room, clock=self.clock), ways)

    def call(self, session: str | None = "s", client: str | None = None) -> Reply:
        asked, reply = exchange(session)
        if session is None:
            asked = replace(asked, dialect=V2025_11_25, caller=Caller(client=client))
        self.front.call(asked, "echo", RAW)
        return reply

    def told(self) -> list[Message]:
        return [self.sessions.get_nowait() for _ in range(self.sessions.depth())]

    def sweep_after(self, seconds: float) -> list[executor.Sweep]:
        self.clock.seconds += seconds
        self.front.tend(self.clock.seconds)
        return [self.executor.get_nowait() for _ in range(self.executor.depth())]


def test_what_is_answered_leaves_the_table() -> None:
    """Ours: nothing leaks, whoever answers."""
    door = Door()
    replies = [door.call()]
    for ask in (
        lambda asked: door.front.open_session(asked, b"{}"),
        door.front.end_session,
        lambda asked: door.front.answer(asked, Response(200)),
    ):
        asked, reply = exchange()
        ask(asked)
        replies.append(reply)
    assert door.front.unanswered == 4

    for message in door.told():
        asked = message.call.exchange if isinstance(message, sessions.Admit) else message.exchange  # type: ignore[attr-defined]
        assert asked.reply.complete(Response(200, b"first"))
        assert not asked.reply.complete(Response(200, b"second"))

    assert door.front.unanswered == 0
    assert [reply.response.body for reply in replies] == [b"first"] * 4


def test_calls_over_the_cap_are_refused_and_everything_else_goes_on() -> None:
    """Issue, "Configuration": limits.in_flight; a full house still answers ping."""
    door = Door(in_flight=3)
    for _ in range(3):
        door.call()

    with pytest.raises(Busy, match="3 calls are in flight"):
        door.call()
    door.front.answer(exchange()[0], Response(200))
    door.front.end_session(exchange()[0])
    assert door.front.unanswered == 5


@pytest.mark.parametrize(
    ("greedy", "other", "whose"),
    [
        ({"session": "a"}, {"session": "b"}, "session"),
        ({"session": None, "client": "a"}, {"session": None, "client": "b"}, "client"),
        ({"session": None}, {"session": None, "client": "b"}, "client"),
        ({"session": "a"}, {"session": None, "client": "a"}, "session"),
    ],
)
def test_one_principal_cannot_take_every_slot(
    greedy: dict[str, str | None], other: dict[str, str | None], whose: str
) -> None:
    """Issue 5, section 6: calls in flight per principal; a session, or what a client of ``/mcp`` calls itself."""
    door = Door(in_flight=10, each=2)
    first, _ = door.call(**greedy), door.call(**greedy)

    with pytest.raises(Busy, match=f"2 calls of this {whose} are in flight. Wait until some of them have ended."):
        door.call(**greedy)
    assert not door.call(**other).done
    for message in door.told():
        if isinstance(message, sessions.Admit):
            message.call.exchange.reply.complete(Response(200))
    while not door.audit.empty():
        door.audit.get_nowait().call.exchange.reply.complete(Response(200))

    assert first.done
    assert [door.call(**greedy).done for _ in range(2)] == [False, False]
    with pytest.raises(Busy):
        door.call(**greedy)


def test_whoever_has_its_answer_has_its_slot_back() -> None:
    """Ours: one call after the other is never one too many, however fast the next one is."""
    door = Door(in_flight=1)
    left = []

    class Watched(Reply):
        def complete(self, response: Response) -> bool:
            left.append(door.front.unanswered)
            return super().complete(response)

    door.front.call(exchange(reply=Watched())[0], "echo", RAW)
    (admit,) = door.told()
    assert isinstance(admit, sessions.Admit)
    assert admit.call.exchange.reply.complete(Response(200))
    assert left == [0]


def test_there_is_an_end_to_everything_else_too() -> None:
    """STYLE 12: every buffer has a chosen size."""
    door = Door(in_flight=3)
    for _ in range(3 + RESERVE):
        door.front.answer(exchange()[0], Response(200))

    with pytest.raises(Busy):
        door.front.answer(exchange()[0], Response(200))
    assert door.front.unanswered == 3 + RESERVE


def test_a_full_mailbox_answers_busy_and_leaves_nothing_in_the_table() -> None:
    """Issue, "Actors": a full mailbox refuses, the edge answers busy."""
    door = Door(mailbox=0)
    reply = door.call()

    assert reply.response.status == 503
    assert dict(reply.response.headers)["Retry-After"]
    assert door.front.unanswered == 0


def test_while_it_stops_nothing_new_is_let_in() -> None:
    """Issue, "HTTP edge", shutdown."""
    door = Door()
    before = door.call()
    door.front.stop_admitting()

    with pytest.raises(Stopping):
        door.call()
    with pytest.raises(Stopping):
        door.front.answer(exchange()[0], Response(200))
    assert door.front.unanswered == 1
    (admit,) = door.told()
    assert isinstance(admit, sessions.Admit)
    admit.call.exchange.reply.complete(Response(200))
    assert before.done
    assert door.front.unanswered == 0


def test_arguments_that_cannot_be_summed_up_leave_nothing_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a fault on the way in is the edge's to answer."""

    def broken(_arguments: msgspec.Raw) -> None:
        raise RecursionError

    monkeypatch.setattr("actors.front.summarise", broken)
    door = Door()
    with pytest.raises(RecursionError):
        door.call()

    assert door.front.unanswered == 0


def test_the_sweep_asks_about_old_calls_and_fails_other_lost_requests(caplog: pytest.LogCaptureFixture) -> None:
    """Issue, "Actors": a sweep for lost exchanges."""
    caplog.set_level("CRITICAL")
    door = Door()
    asked, ping = exchange()
    door.front.answer(asked, Response(200))
    call = door.call()

    assert door.sweep_after(LOST_AFTER_S - 1) == [executor.Sweep(())]
    (sweep,) = door.sweep_after(2)

    assert ping.response.status == 500
    assert [old.exchange.reply for old in sweep.old] != []
    assert not call.done, "whether a call is lost is known to the executor alone"
    assert door.front.unanswered == 1


def test_a_call_that_ended_and_was_never_answered_is_failed_in_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """Issue, "Actors": every path must complete its exchange."""
    caplog.set_level("CRITICAL")
    door = Door()
    reply = door.call()
    (sweep,) = door.sweep_after(LOST_AFTER_S + 1)
    (call,) = sweep.old
    call.claim()
    sweeps = 0
    while not reply.done:
        sweeps += 1
        assert sweeps < 2 * LOST_AFTER_S
        door.sweep_after(1)

    assert reply.response.status == 500
    assert sweeps > LOST_AFTER_S / 2, "its record may still be on the way to the disk"
    assert door.front.unanswered == 0


def test_an_executor_that_is_behind_does_not_break_the_sweep(caplog: pytest.LogCaptureFixture) -> None:
    """Ours: a full mailbox must not reach the server's loop."""
    caplog.set_level("CRITICAL")
    door = Door()
    asked, ping = exchange()
    door.front.answer(asked, Response(200))
    door.clock.seconds += LOST_AFTER_S + 1
    for _ in range(5):
        door.front.tend(door.clock.seconds)

    assert ping.done


def test_requests_come_and_go_on_many_threads_without_a_trace() -> None:
    """Ours: the table is written by the loop and by whoever completes."""
    door = Door(in_flight=1000)
    over = threading.Event()

    def answer() -> None:
        while not (over.is_set() and door.sessions.empty()):
            for message in door.told():
                message.call.exchange.reply.complete(Response(200))  # type: ignore[attr-defined]

    thread = threading.Thread(target=answer)
    thread.start()
    replies = []
    for _ in range(5000):
        try:
            replies.append(door.call())
        except Busy:
            continue
    over.set()
    thread.join(10)

    assert all(reply.done for reply in replies)
    assert door.front.unanswered == 0
