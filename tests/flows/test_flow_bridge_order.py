"""The order of the bridge's checks: whichever of two faults comes first in the contract is the one that is answered."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Answer, Daemon

UNKNOWN = "00000000-0000-4000-8000-000000000000"
PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'

# In the order of the contract: what each fault changes in a good request, and how it is answered.
FAULTS: dict[str, tuple[dict[str, Any], tuple[int, int | None]]] = {
    "foreign Origin": ({"Origin": "https://evil.example"}, (403, -32000)),
    "foreign Host": ({"Host": "evil.example"}, (403, -32000)),
    "wrong method": ({"method": "PUT"}, (405, None)),
    "no token": ({"Authorization": None}, (401, -32000)),
    "reserved path": ({"path": "/xfer/a"}, (404, -32000)),
    "broken body": ({"body": b'{"jsonrpc":'}, (400, -32700)),
    "no jsonrpc": ({"body": b'{"id":7,"method":"ping"}'}, (400, -32600)),
    "no session": ({"mcp_session_id": None}, (400, -32000)),
    "unknown session": ({"mcp_session_id": UNKNOWN}, (404, -32000)),
    "unknown method": ({"body": b'{"jsonrpc":"2.0","id":7,"method":"nothing"}'}, (200, -32601)),
}
# Two faults that cannot be in one request, or of which the second is no fault beside the first.
APART = {
    ("broken body", "no jsonrpc"),
    ("broken body", "unknown method"),
    ("no jsonrpc", "unknown method"),
    ("no session", "unknown session"),
    ("wrong method", "reserved path"),
}
PAIRS = [pair for pair in itertools.combinations(FAULTS, 2) if pair not in APART]


@pytest.fixture(autouse=True)
def _alive_afterwards(shared_daemon: Daemon) -> Iterator[None]:
    yield
    shared_daemon.alive()


def _send(daemon: Daemon, *faults: str) -> Answer:
    client = daemon.session()
    wanted: dict[str, Any] = {"method": "POST", "path": "/", "body": PING}
    for fault in faults:
        wanted |= FAULTS[fault][0]
    return client.send(wanted.pop("method"), wanted.pop("path"), wanted.pop("body"), **wanted)


def _verdict(answer: Answer) -> tuple[int, int | None]:
    return answer.status, answer.error["code"] if answer.body else None


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone_has_its_answer(shared_daemon: Daemon, fault: str) -> None:
    """Seed, "Order of processing" (请求处理顺序) and "Table of errors" (错误码总表)."""
    assert _verdict(_send(shared_daemon, fault)) == FAULTS[fault][1]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_of_two_faults_the_earlier_check_answers(shared_daemon: Daemon, first: str, second: str) -> None:
    """Seed, "Order of processing" (请求处理顺序): the first check that fails decides; ours puts Host and Origin in front."""
    assert _verdict(_send(shared_daemon, first, second)) == FAULTS[first][1]


def test_all_faults_at_once_are_answered_as_the_first(shared_daemon: Daemon) -> None:
    """Seed, "Order of processing" (请求处理顺序): mended one by one, a request meets every check in turn."""
    faults = ["foreign Origin", "wrong method", "no token", "broken body", "no session"]
    seen = []
    while faults:
        seen.append(_verdict(_send(shared_daemon, *faults)))
        faults.pop(0)

    assert seen == [(403, -32000), (405, None), (401, -32000), (400, -32700), (400, -32000)]


@pytest.mark.parametrize(
    ("session", "status"), [(None, 400), (UNKNOWN, 404)], ids=["no session header", "unknown session"]
)
@pytest.mark.parametrize("method", ["notifications/initialized", "tools/list", "tools/call", "ping", "nothing"])
def test_the_session_is_asked_for_before_the_method(
    shared_daemon: Daemon, method: str, session: str | None, status: int
) -> None:
    """Seed, "Order of processing" (请求处理顺序) 7-9: session, then notifications, then dispatch."""
    answer = shared_daemon.session().ask(method, {}, mcp_session_id=session)

    assert answer.status == status
    assert answer.error["message"] == ("missing mcp-session-id" if session is None else "unknown session")


def test_a_call_of_no_session_is_not_run_and_not_recorded(shared_daemon: Daemon) -> None:
    """Seed, "Authentication" (鉴权): session errors leave no record."""
    before = shared_daemon.audit()
    target = shared_daemon.home / "never"

    for session in (None, UNKNOWN):
        answer = shared_daemon.session().ask(
            "tools/call",
            {"name": "write", "arguments": {"path": str(target), "content": "x"}},
            mcp_session_id=session,
        )
        assert answer.status in (400, 404)

    assert not target.exists()
    assert shared_daemon.audit() == before
