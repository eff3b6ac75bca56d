"""Sessions when very many come at once, and when one is evicted in the middle of its own call."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import wire
from crowd import callers, drive
from harness import until
from inflight import Later
from watchers import operator

if TYPE_CHECKING:
    from pathlib import Path

    from harness import Daemon

CAP = 64


def test_five_hundred_sessions_at_once_are_five_hundred_and_the_last_stay(victim: Daemon) -> None:
    """Row S03: distinct UUIDs in every answer, a table of 64, and nothing raised."""
    opening = wire.post(wire.INITIALIZE, victim.token)
    with callers(victim.port, [[opening] for _ in range(500)]) as crowd:
        drive(crowd)
    assert [caller.answers[0][0] for caller in crowd] == [200] * 500

    alive = {session["id"] for session in operator(victim, "GET", "/sessions")[1]}
    assert len(alive) == CAP
    assert all(str(uuid.UUID(session)) == session for session in alive)
    opener = victim.client()
    opened = {opener.ask("initialize").headers["mcp-session-id"] for _ in range(CAP)}
    assert len(opened) == CAP
    assert {session["id"] for session in operator(victim, "GET", "/sessions")[1]} == opened


def test_a_session_evicted_during_its_call_is_answered_and_recorded(victim: Daemon, tmp_path: Path) -> None:
    """Row S04: the call ends as any other, ``done`` has its session; later requests find none."""
    client = victim.session()
    gate = tmp_path / "gate"
    command = f"touch {gate}.on; until [ -e {gate} ]; do sleep 0.02; done; echo through"
    answer = Later(lambda: client.call("bash", command=command))
    until(gate.with_suffix(".on").exists, what="the call runs")
    other = victim.client()
    for _ in range(CAP):
        assert other.ask("initialize").status == 200
    assert other.ask("ping", mcp_session_id=client.session).status == 404
    gate.touch()

    assert "through" in answer.result().text
    assert [record["phase"] for record in victim.audit() if record["sid"] == client.session] == ["start", "done"]
    assert client.ask("ping").status == 404
