"""More than is taken: what is too much is refused at once and in known words, and what was taken is done."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import psutil
from crowd import call, callers, drive
from figures import Figures, in_flight, of
from harness import running, until
from inflight import WITH_TOOLS
from others import Others

from a2mcp.errors import Busy
from a2mcp.protocol.exchange import Exchange
from a2mcp.protocol.response import Response
from a2mcp.session.table import SessionTable
from a2mcp.types import SessionId
from actors.kit import halt, launch
from actors.ref import Mailbox, Ref
from actors.sessions import Answer, Sessions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MESSAGES = 100_000
REFUSED = of(5_000, 100_000)
ROOM = 200
CONNECTIONS = 50


class Reply:
    """Counts its answers."""

    answers = 0

    def complete(self, _response: Response) -> bool:
        Reply.answers += 1
        return True

    def begin_stream(self) -> bool:
        return False

    def send(self, _message: bytes) -> bool:
        return False

    def tend(self, now: float) -> None:
        pass

    def when_gone(self, tell: Callable[[], None]) -> None:
        pass


class Clock:
    """Stands still."""

    @staticmethod
    def monotonic() -> float:
        return 0.0


def test_an_actor_stuffed_with_messages_refuses_and_does_what_it_took(figures: Figures) -> None:
    """Issue 5, section 3, and Z04: 100,000 messages to one actor that does not come to read any."""
    table = SessionTable(clock=Clock(), limit=1)  # type: ignore[arg-type]
    session = SessionId(str(table.open()))
    mailbox = Sessions.mailbox_for("Sessions")
    refused: list[str] = []
    slowest = 0.0
    weight = psutil.Process().memory_info().rss
    for number in range(MESSAGES):
        asked = Exchange(Reply(), b"%d" % number, session)
        began = time.perf_counter()
        try:
            Ref(mailbox).tell(Answer(asked, Response(200)))
        except Busy as error:
            refused.append(str(error))
        slowest = max(slowest, time.perf_counter() - began)
    heavier = (psutil.Process().memory_info().rss - weight) / 2**20
    figures.note(
        messages=MESSAGES, taken=MESSAGES - len(refused), refused=len(refused), memory_MB=f"{heavier:.1f} more"
    )
    figures.note(slowest_refusal_or_taking_ms=f"{slowest * 1000:.2f}")

    nobody: Ref[object] = Ref(Mailbox("nobody", 0))
    actor = Sessions(mailbox, table=table, audit_writer=nobody, run_calls=nobody)  # type: ignore[arg-type]
    launch(actor)
    until(lambda: Reply.answers == Sessions.MAILBOX, what="all that was taken is done")
    assert halt(actor, timeout=5)
    assert len(refused) == MESSAGES - Sessions.MAILBOX
    assert set(refused) == {"Sessions is busy. Try again in a moment."}
    assert heavier < 64
    assert slowest < 0.5


def test_calls_over_the_cap_are_refused_at_once(tmp_path: Path, figures: Figures) -> None:
    """Issue 5, section 3, and Z04: 100,000 calls of which not one has room; others go on, memory does not grow."""
    settings = {"limits": {"in_flight": 2 * ROOM, "in_flight_each": ROOM}, "drain_s": 0.1}
    with running(tmp_path / "home", argv=WITH_TOOLS, settings=settings) as daemon:
        session = daemon.session().session
        assert session is not None
        others = Others(daemon)
        others.ask()
        requests = [[call(daemon.token, session, 1, "hang", {})] for _ in range(ROOM)]
        with callers(daemon.port, requests) as hanging:
            drive(hanging, send_only=True)
            until(lambda: in_flight(daemon) == ROOM, what="there is no room")
            weight, began, each = daemon.rss_mb, time.monotonic(), 50
            said = set()
            for _ in range(REFUSED // CONNECTIONS // each):
                more = [[call(daemon.token, session, n, "echo", {"text": "x" * 100}) for n in range(each)]]
                with callers(daemon.port, more * CONNECTIONS) as crowd:
                    drive(crowd)
                    answers = [answer for caller in crowd for answer in caller.answers]
                assert {status for status, _ in answers} == {503}
                said |= {json.dumps(body["error"]) for _, body in answers}
                others.ask()
            took = time.monotonic() - began
            figures.note(refused_calls=REFUSED, refusals_a_second=f"{REFUSED / took:,.0f}")
            figures.note(memory_MB=f"{weight:.1f} to {daemon.rss_mb:.1f}", slowest_of_all_others_ms=others.worst_ms)
            assert daemon.rss_mb - weight < 10
        text = f"{ROOM} calls of this session are in flight. Wait until some of them have ended."
        assert said == {json.dumps({"code": -32000, "message": text})}
        assert not any(record["tool"] == "echo" for record in daemon.audit()), "what is refused is no call"
