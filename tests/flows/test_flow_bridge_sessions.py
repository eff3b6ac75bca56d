"""Sessions as a client sees them: issued, demanded, refreshed, evicted, ended, forgotten at a restart."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING

import pytest
import wire
from harness import Client, Daemon, lasting_port, running, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _alive_afterwards(shared_daemon: Daemon) -> Iterator[None]:
    yield
    shared_daemon.alive()


def test_every_initialize_issues_a_new_session(shared_daemon: Daemon) -> None:
    """Seed, "Session lifecycle" (会话生命周期) 1: a UUID in the header, also when one was sent along."""
    client = shared_daemon.session()
    first = client.session

    second = client.ask("initialize").headers["mcp-session-id"]

    assert first is not None
    assert second != first
    assert str(uuid.UUID(second)) == second
    assert client.ask("ping").result == {}, "the first one stays"


def test_initialize_needs_no_session_and_does_not_mind_a_dead_one(shared_daemon: Daemon) -> None:
    """Seed, "Session lifecycle" (会话生命周期) 1: initialize is not under the rule."""
    assert shared_daemon.client().ask("initialize", mcp_session_id="gone").status == 200


def test_everything_after_needs_the_header(shared_daemon: Daemon) -> None:
    """Seed, "Session lifecycle" (会话生命周期) 2: requests and notifications alike."""
    client = shared_daemon.session()

    for method in ("ping", "tools/list", "tools/call", "notifications/initialized", "nothing"):
        answer = client.ask(method, mcp_session_id=None)
        assert (answer.status, answer.error) == (400, {"code": -32000, "message": "missing mcp-session-id"})
        assert answer.json["id"] == client._id


def test_the_sixty_fifth_session_evicts_the_least_recently_seen(tmp_path: Path) -> None:
    """Seed, "Session lifecycle" (会话生命周期) 3: at most 64; at the next initialize the least recently seen goes."""
    with running(tmp_path / "home") as daemon:
        client = daemon.client()
        sessions = [client.ask("initialize").headers["mcp-session-id"] for _ in range(64)]
        assert [client.ask("ping", mcp_session_id=session).status for session in sessions] == [200] * 64
        client.post({"jsonrpc": "2.0", "method": "notifications/x"}, mcp_session_id=sessions[0])

        newest = client.ask("initialize").headers["mcp-session-id"]

        gone = client.ask("ping", mcp_session_id=sessions[1])
        assert (gone.status, gone.error) == (404, {"code": -32000, "message": "unknown session"})
        kept = [sessions[0], *sessions[2:], newest]
        assert [client.ask("ping", mcp_session_id=session).status for session in kept] == [200] * 64


def test_delete_ends_a_session_and_is_idempotent(shared_daemon: Daemon) -> None:
    """Seed, "Session lifecycle" (会话生命周期) 4: 204, also for an unknown or absent header; row S07."""
    client, other = shared_daemon.session(), shared_daemon.session()

    ended = [client.send("DELETE", mcp_session_id=session) for session in (client.session, client.session, "x", None)]

    assert [(answer.status, answer.body) for answer in ended] == [(204, b"")] * 4
    assert client.ask("ping").status == 404
    assert other.ask("ping").result == {}


def test_a_session_ended_during_its_own_call_lets_the_call_finish(shared_daemon: Daemon) -> None:
    """Row S07: DELETE during the call; row S04: its record carries the session it came on."""
    client, other = shared_daemon.session(), shared_daemon.client()
    gate = shared_daemon.home / "gate-s07"
    answers = []
    command = f"touch {gate}.on; until [ -e {gate} ]; do sleep 0.02; done; echo through"
    thread = threading.Thread(target=lambda: answers.append(client.call("bash", command=command)))

    thread.start()
    until(lambda: gate.with_suffix(".on").exists(), what="the call runs")
    assert other.send("DELETE", mcp_session_id=client.session).status == 204
    assert other.ask("ping", mcp_session_id=client.session).status == 404
    gate.touch()
    thread.join(20)

    assert "through" in answers[0].text
    done = [record for record in shared_daemon.audit() if record["sid"] == client.session]
    assert [record["phase"] for record in done] == ["start", "done"]


@pytest.mark.parametrize(
    "spoil",
    [str.upper, lambda sid: sid[:-1], lambda sid: sid + "0", lambda sid: sid.replace("-", ""), lambda sid: f"{sid}, {sid}",
     lambda sid: f"{{{sid}}}", lambda sid: f'"{sid}"', lambda sid: sid.replace("-", " -"), lambda sid: f"urn:uuid:{sid}",
     lambda sid: sid + "\xa0", lambda sid: "x" * 20_000],
)  # fmt: skip
def test_only_the_very_id_is_the_session(shared_daemon: Daemon, spoil: object) -> None:
    """Row S05: near misses, other case, spaces, lists."""
    client = shared_daemon.session()
    assert callable(spoil)

    assert client.ask("ping", mcp_session_id=spoil(client.session)).status == 404
    assert client.ask("ping").result == {}


def test_two_session_headers_or_a_huge_one_are_refused(shared_daemon: Daemon) -> None:
    """Row S05: header twice, 1 MB, CRLF."""
    session = shared_daemon.session().session
    assert session is not None
    ping, token = wire.message("ping"), shared_daemon.token

    twice = shared_daemon.raw(wire.post(ping, token, f"mcp-session-id: {session}", session=session))
    huge = shared_daemon.raw(wire.post(ping, token, session="x" * 1_000_000))
    broken = shared_daemon.raw(wire.post(ping, token, session=f"{session}\r\n x"))
    empty = shared_daemon.raw(wire.post(ping, token, "mcp-session-id:", "Connection: close"))

    assert [wire.statuses(said) for said in (twice, huge, broken, empty)] == [[400], [431], [400], [400]]


def test_a_restart_forgets_every_session(tmp_path: Path) -> None:
    """Seed, "Session lifecycle" (会话生命周期) 5: memory of the process only; row S08."""
    daemon = Daemon(tmp_path / "home", settings={"port": lasting_port()}).start()
    try:
        sessions = [daemon.session().session for _ in range(5)]
        port = daemon.port
        assert daemon.stop() == 0
        daemon.start()

        client = daemon.client()
        assert daemon.port == port
        for session in sessions:
            answer = client.ask("ping", mcp_session_id=session)
            assert (answer.status, answer.error["message"]) == (404, "unknown session")
    finally:
        daemon.kill()


def test_the_same_id_twice_at_once_is_two_calls(shared_daemon: Daemon) -> None:
    """Row S10: both answered, four records, two pair ids, none of them the caller's; seed, "tools/call"."""
    owner = shared_daemon.session()
    gate = shared_daemon.home / "gate-s10"
    answers: dict[str, object] = {}

    def ask(name: str) -> None:
        client = Client(shared_daemon.port, shared_daemon.token)
        client.session = owner.session
        command = f"touch {gate}.{name}; until [ -e {gate} ]; do sleep 0.02; done; echo {name}"
        body = {"jsonrpc": "2.0", "id": "same", "method": "tools/call"}
        answers[name] = client.post(body | {"params": {"name": "bash", "arguments": {"command": command}}})
        client.close()

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    until(lambda: all(gate.with_suffix(f".{name}").exists() for name in ("one", "two")), what="both run")
    gate.touch()
    for thread in threads:
        thread.join(20)

    assert {name: answer.json["id"] for name, answer in answers.items()} == {"one": "same", "two": "same"}  # type: ignore[attr-defined]
    assert all(name in answer.text for name, answer in answers.items())  # type: ignore[attr-defined]
    mine = [record for record in shared_daemon.audit() if record["sid"] == owner.session]
    assert sorted(record["phase"] for record in mine) == ["done", "done", "start", "start"]
    assert len({record["id"] for record in mine}) == 2
    assert all(str(uuid.UUID(record["id"])) == record["id"] for record in mine)
