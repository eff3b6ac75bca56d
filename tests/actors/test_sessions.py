"""The sessions actor: every answer waits for it to say that the session is alive."""

from __future__ import annotations

from typing import Any

import pytest
from living import WAIT_S, Clock, Ear, Reply, call_of, exchange

from a2mcp.protocol.response import Response
from a2mcp.session.table import SessionTable
from a2mcp.types import SessionId
from actors import audit, sessions
from actors.executor import Execute
from actors.kit import launch
from actors.ref import Mailbox, Ref
from actors.sessions import Admit, Answer, End, Open, Sessions


class Desk:
    """The actor, with a recorder in the place of the audit writer."""

    def __init__(self, limit: int = 2) -> None:
        self.table = SessionTable(clock=Clock(), limit=limit)
        self.audit = Ear("AuditWriter")
        self.mailbox = Sessions.mailbox_for("Sessions")
        self.ref: Ref[sessions.Command] = Ref(self.mailbox)
        self.launch()

    def launch(self, audit_writer: Ref[Any] | None = None) -> None:
        self.executor: Ref[Any] = Ref(Mailbox("Executor", 10))
        self.actor = Sessions(
            self.mailbox, table=self.table, audit_writer=audit_writer or self.audit.ref, run_calls=self.executor
        )
        launch(self.actor)

    def open(self) -> str:
        asked, reply = exchange(None, b'"a"')
        self.ref.tell(Open(asked, b'{"x":1}'))
        assert reply.json == {"jsonrpc": "2.0", "id": "a", "result": {"x": 1}}
        return dict(reply.response.headers)["mcp-session-id"]


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")


def test_a_session_is_opened_used_and_ended(desk: Desk) -> None:
    """Seed, "Sessions"."""
    session = desk.open()
    asked, reply = exchange(session)
    desk.ref.tell(Answer(asked, Response(200, b'{"pong":1}')))
    assert reply.json == {"pong": 1}
    assert sessions.count(desk.ref) == 1

    for _ in range(2):
        asked, reply = exchange(session)
        desk.ref.tell(End(asked))
        assert reply.response.status == 204
    asked, reply = exchange(session)
    desk.ref.tell(Answer(asked, Response(200)))

    assert reply.response.status == 404
    assert reply.json["error"]["code"] == -32000


def test_a_call_of_a_living_session_goes_to_the_log_first(desk: Desk) -> None:
    """DESIGN 3: the path of a call."""
    call, _ = call_of("echo", session=desk.open())
    desk.ref.tell(Admit(call))

    (start,) = desk.audit.wait_for(audit.Start)
    assert start.call is call
    assert start.then is desk.executor
    assert isinstance(start.message, Execute)


def test_a_call_of_no_session_is_answered_and_not_recorded(desk: Desk) -> None:
    """Seed, "Sessions": an unknown one gets 404; nothing has begun."""
    call, reply = call_of("echo", session="gone")
    desk.ref.tell(Admit(call))

    assert reply.response.status == 404
    assert desk.audit.heard() == []


def test_a_full_table_forgets_the_least_recently_seen(desk: Desk) -> None:
    """Seed, "Sessions": 64 at most; here 2."""
    first, second = desk.open(), desk.open()
    asked, reply = exchange(first)
    desk.ref.tell(Answer(asked, Response(200)))
    assert reply.response.status == 200
    desk.open()

    assert desk.table.touch(SessionId(first))
    assert not desk.table.touch(SessionId(second))


def test_a_full_log_refuses_the_call(desk: Desk) -> None:
    """Issue, "Actors": bounded mailboxes that refuse; the call never began."""
    session = desk.open()
    desk.actor.stop()
    desk.actor.thread.join(WAIT_S)
    desk.launch(Ref(Mailbox("AuditWriter", 0)))
    call, reply = call_of("echo", session=session)
    desk.ref.tell(Admit(call))

    assert reply.response.status == 503
    assert dict(reply.response.headers)["Retry-After"]


def test_who_kills_the_actor_is_answered_and_its_sessions_stay(desk: Desk) -> None:
    """Issue, "Actors": the exchange that a killed actor held is answered with an error."""

    class Once(Reply):
        def complete(self, response: Response) -> bool:
            if response.status == 204:
                raise SystemExit
            return super().complete(response)

    session = desk.open()
    asked, reply = exchange(session, reply=Once())
    desk.ref.tell(End(asked))
    assert reply.response.status == 500
    desk.actor.thread.join(WAIT_S)
    other = SessionId(str(desk.table.open()))
    desk.launch()
    asked, reply = exchange(other)
    desk.ref.tell(Answer(asked, Response(200)))

    assert reply.response.status == 200
