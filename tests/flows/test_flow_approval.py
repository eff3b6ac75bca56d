"""Approval, end to end: a call waits, the operator sees it, allows or denies it, and everything else goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from harness import Daemon, running, until
from inflight import Later, ended, started
from watchers import approvals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Start a daemon with these approval settings."""
    daemons: list[Daemon] = []

    def start(**approval: Any) -> Daemon:
        daemons.append(Daemon(tmp_path / "home", settings={"approval": approval}).start())
        return daemons[-1]

    yield start
    for daemon in daemons:
        daemon.kill()


def waiting(daemon: Daemon, count: int = 1) -> list[dict[str, Any]]:
    """Wait until so many calls wait; as ``a2mcp approvals --json`` shows them."""
    until(lambda: len(approvals(daemon)) == count, what=f"{count} calls waiting")
    return list(json.loads(daemon.cli("approvals", "--json").stdout))


def test_an_allowed_call_runs_and_a_denied_one_does_not(asking: Callable[..., Daemon]) -> None:
    """Issue, "Approval": parked with its start recorded; ping goes on; deny is isError."""
    daemon = asking(mode="write")
    first, second, other = daemon.session(), daemon.session(), daemon.session()
    allowed = Later(lambda: first.call("bash", command="touch allowed; echo ran"))
    (shown,) = waiting(daemon)
    assert shown["tool"] == "bash"
    assert json.loads(shown["args"]) == {"command": "touch allowed; echo ran"}
    assert shown["session_id"] == first.session
    assert shown["call_id"] == started(daemon, "bash")[0]["id"]
    assert ended(daemon, "bash") == []

    denied = Later(lambda: second.call("write", path="denied", content="x"))
    both = waiting(daemon, 2)
    assert other.ask("ping").result == {}
    assert other.call("read", path="stderr.txt").result["isError"] is False, "a reading tool asks nobody"
    assert json.loads(daemon.cli("status", "--json").stdout)["approvals_waiting"] == 2
    assert not allowed.over
    assert not (daemon.home / "allowed").exists()

    assert daemon.cli("approve", both[0]["id"]).returncode == 0
    assert "ran" in allowed.result().text
    assert (daemon.home / "allowed").exists()
    assert daemon.cli("deny", both[1]["id"], "--reason", "not on a Friday").returncode == 0
    answer = denied.result()
    assert answer.status == 200
    assert answer.result["isError"] is True
    assert "not on a Friday" in answer.text
    assert not (daemon.home / "denied").exists()
    assert [record["isError"] for record in ended(daemon, "write")] == [True]
    again = daemon.cli("approve", both[1]["id"])
    assert again.returncode == 1
    assert "was denied before you answered" in again.stderr


def test_a_tools_own_rule_wins_over_the_mode(asking: Callable[..., Daemon]) -> None:
    """Issue, "Approval": allow, deny and prompt by name, in both directions."""
    daemon = asking(mode="always-ask", tools={"bash": "allow", "write": "deny"})
    client = daemon.session()

    assert "free" in client.call("bash", command="echo free").text
    refused = client.call("write", path="x", content="x")
    assert refused.result["isError"] is True
    assert "deny" in refused.text
    asked = Later(lambda: client.call("read", path="stderr.txt"))
    (shown,) = waiting(daemon)
    assert shown["tool"] == "read"
    daemon.cli("approve", shown["id"])
    assert asked.result().result["isError"] is False


def test_nothing_is_asked_by_default(daemon: Daemon) -> None:
    """Issue, "Approval": yolo is the default."""
    assert "at once" in daemon.session().call("bash", command="echo at once").text
    assert json.loads(daemon.cli("approvals", "--json").stdout) == []


def test_calls_that_wait_at_the_bound_are_ended(tmp_path: Path) -> None:
    """Issue, "HTTP edge": what is still running at the bound is ended and recorded."""
    settings = {"approval": {"mode": "always-ask"}, "drain_s": 0.3}
    with running(tmp_path / "home", settings=settings) as daemon:
        clients = [daemon.session() for _ in range(3)]
        calls = [Later(lambda client=client: client.call("bash", command="touch never")) for client in clients]
        until(lambda: len(started(daemon, "bash")) == 3, what="three starts")
        assert daemon.stop() == 0

        answers = [call.result() for call in calls]
        assert {answer.result["isError"] for answer in answers} == {True}
        assert "stopped before this call" in answers[0].text
        assert len(ended(daemon, "bash")) == 3
        assert not (daemon.home / "never").exists()
        assert "Traceback" not in daemon.stderr


def test_a_call_that_is_cancelled_or_whose_caller_left_does_not_surprise_the_operator(
    asking: Callable[..., Daemon],
) -> None:
    """Ours: cancelled is off the list; a caller of the bridge that only left may come back, so its call stays."""
    daemon = asking(mode="always-ask")
    first, second, other = daemon.session(), daemon.session(), daemon.session()
    cancelled = Later(lambda: first.call("bash", command="touch cancelled"))
    waiting(daemon)
    number = first._id
    other.session = first.session
    other.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    assert cancelled.result().result["isError"] is True
    waiting(daemon, 0)

    left = Later(lambda: second.call("bash", command="touch left"))
    (shown,) = waiting(daemon)
    assert second._connection.sock is not None
    second._connection.sock.shutdown(2)
    assert left.failed
    assert daemon.cli("approve", shown["id"]).returncode == 0
    until((daemon.home / "left").exists, what="the approved command")
    until(lambda: len(ended(daemon, "bash")) == 2, what="both records")
    assert not (daemon.home / "cancelled").exists()
    daemon.alive()
