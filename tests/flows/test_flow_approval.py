"""Approval, end to end: a call waits, the operator sees it, allows or denies it, and everything else goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from harness import Client, Daemon, running, until
from inflight import Later, ended, started
from watchers import approvals, decide

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def writing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that asks before it writes, shared by this module."""
    home = tmp_path_factory.mktemp("writing") / "home"
    with running(home, settings={"approval": {"mode": "write"}}) as daemon:
        yield daemon


@pytest.fixture
def asking(writing: Daemon) -> Iterator[Daemon]:
    """The same; no call waits any more at the end of a test."""
    yield writing
    for one in approvals(writing):
        decide(writing, one["id"], approve=False)


def waiting(daemon: Daemon, count: int = 1) -> list[dict[str, Any]]:
    """Wait until so many calls wait; what is known of them."""
    until(lambda: len(approvals(daemon)) == count, what=f"{count} calls waiting")
    return approvals(daemon)


def shown(daemon: Daemon, count: int) -> list[dict[str, Any]]:
    """Wait until so many calls wait; as ``a2mcp approvals --json`` shows them."""
    waiting(daemon, count)
    return list(json.loads(daemon.cli("approvals", "--json").stdout))


def of(client: Client, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of one session."""
    return [record for record in records if record["sid"] == client.session]


def test_an_allowed_call_runs_and_a_denied_one_does_not(asking: Daemon) -> None:
    """Issue, "Approval": parked with its start recorded; ping goes on; deny is isError."""
    first, second, other = asking.session(), asking.session(), asking.session()
    allowed = Later(lambda: first.call("bash", command="touch allowed; echo ran"))
    (one,) = shown(asking, 1)
    assert one["tool"] == "bash"
    assert json.loads(one["args"]) == {"command": "touch allowed; echo ran"}
    assert one["session_id"] == first.session
    assert one["call_id"] == of(first, started(asking, "bash"))[0]["id"]
    assert of(first, ended(asking, "bash")) == []

    denied = Later(lambda: second.call("write", path="denied", content="x"))
    both = shown(asking, 2)
    assert other.ask("ping").result == {}
    assert other.call("read", path="stderr.txt").result["isError"] is False, "a reading tool asks nobody"
    assert json.loads(asking.cli("status", "--json").stdout)["approvals_waiting"] == 2
    assert not allowed.over
    assert not (asking.home / "allowed").exists()

    assert asking.cli("approve", both[0]["id"]).returncode == 0
    assert "ran" in allowed.result().text
    assert (asking.home / "allowed").exists()
    assert asking.cli("deny", both[1]["id"], "--reason", "not on a Friday").returncode == 0
    answer = denied.result()
    assert answer.status == 200
    assert answer.result["isError"] is True
    assert "not on a Friday" in answer.text
    assert not (asking.home / "denied").exists()
    assert [record["isError"] for record in of(second, ended(asking, "write"))] == [True]
    again = asking.cli("approve", both[1]["id"])
    assert again.returncode == 1
    assert "was denied before you answered" in again.stderr


def test_a_tools_own_rule_wins_over_the_mode(tmp_path: Path) -> None:
    """Issue, "Approval": allow, deny and prompt by name, in both directions."""
    settings = {"approval": {"mode": "always-ask", "tools": {"bash": "allow", "write": "deny"}}}
    with running(tmp_path / "home", settings=settings) as daemon:
        client = daemon.session()

        assert "free" in client.call("bash", command="echo free").text
        refused = client.call("write", path="x", content="x")
        assert refused.result["isError"] is True
        assert "deny" in refused.text
        asked = Later(lambda: client.call("read", path="stderr.txt"))
        (one,) = waiting(daemon)
        assert one["tool"] == "read"
        decide(daemon, one["id"], approve=True)
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


def test_a_call_that_is_cancelled_or_whose_caller_left_does_not_surprise_the_operator(asking: Daemon) -> None:
    """Ours: cancelled is off the list; a caller of the bridge that only left may come back, so its call stays."""
    first, second, other = asking.session(), asking.session(), asking.session()
    cancelled = Later(lambda: first.call("bash", command="touch cancelled"))
    waiting(asking)
    number = first._id
    other.session = first.session
    other.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    assert cancelled.result().result["isError"] is True
    assert shown(asking, 0) == []

    left = Later(lambda: second.call("bash", command="touch left"))
    (one,) = waiting(asking)
    assert second._connection.sock is not None
    second._connection.sock.shutdown(2)
    assert left.failed
    decide(asking, one["id"], approve=True)
    until((asking.home / "left").exists, what="the approved command")
    until(lambda: of(first, ended(asking, "bash")) and of(second, ended(asking, "bash")), what="both records")
    assert not (asking.home / "cancelled").exists()
    asking.alive()
