"""Caps on work: what is refused at each of them, in which words, and what goes on all the same."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import wire
from harness import running, until
from inflight import WITH_TOOLS
from standard_client import Standard, legacy
from watchers import operator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Answer, Daemon

HANG = {"name": "hang", "arguments": {}}
ECHO = {"name": "echo", "arguments": {"text": "x"}}


def hang(daemon: Daemon, stack: ExitStack, session: str | None, *, path: str = "/", client: str | None = None) -> None:
    """Have one call hang until the stack is left."""
    named = (f"X-A2MCP-Client: {client}",) if client else ()
    line = stack.enter_context(wire.Line(daemon.port))
    line.send(wire.post(wire.message("tools/call", 1, HANG), daemon.token, *named, path=path, session=session))


def in_flight(daemon: Daemon) -> int:
    return int(operator(daemon, "GET", "/status")[1]["calls_in_flight"])


def refused(answer: Answer, text: str) -> None:
    """Fail unless a call was refused for now, in these words."""
    assert answer.status == 503, answer.body
    assert answer.headers["retry-after"] == "1"
    assert answer.error == {"code": -32000, "message": text}


def test_one_session_cannot_take_every_call_there_may_be(tmp_path: Path) -> None:
    """Issue 5, section 6: a cap per principal, half of all unless set; other sessions, and ping, go on."""
    settings = {"limits": {"in_flight": 6}, "drain_s": 0.1}
    with running(tmp_path / "home", argv=WITH_TOOLS, settings=settings) as daemon, ExitStack() as stack:
        greedy, other = daemon.session(), daemon.session()
        for _ in range(3):
            hang(daemon, stack, greedy.session)
        until(lambda: in_flight(daemon) == 3, what="three calls hang")

        refused(greedy.call("echo"), "3 calls of this session are in flight. Wait until some of them have ended.")
        assert greedy.ask("ping").result == {}
        assert other.call("echo", text="hi").text == "hi"
        for _ in range(3):
            hang(daemon, stack, other.session)
        until(lambda: in_flight(daemon) == 6, what="six calls hang")

        refused(daemon.session().call("echo"), "6 calls are in flight. Try again in a moment.")
        assert other.ask("ping").result == {}
        daemon.alive()
        assert [record["tool"] for record in daemon.audit() if record["phase"] == "start"].count("echo") == 1


def test_one_client_of_the_standard_route_cannot_either(tmp_path: Path) -> None:
    """Issue 5, section 6: without sessions, a client is who it says it is; those that say nothing are one."""
    settings = {"limits": {"in_flight_each": 2}, "drain_s": 0.1}
    with running(tmp_path / "home", argv=WITH_TOOLS, settings=settings) as daemon, ExitStack() as stack:
        mcp = Standard(daemon)
        for client in ("greedy", "greedy", None, None):
            hang(daemon, stack, None, path="/mcp", client=client)
        until(lambda: in_flight(daemon) == 4, what="four calls hang")

        said = "2 calls of this client are in flight. Wait until some of them have ended."
        message, headers = legacy("tools/call", ECHO)
        for client in ("greedy", None):
            refused(mcp.send(message, headers | {"X-A2MCP-Client": client}), said)
        assert mcp.send(message, headers | {"X-A2MCP-Client": "modest"}).text == "x"
        assert mcp.send(*legacy("ping")).result == {}


def test_calls_leave_connections_for_others(tmp_path: Path) -> None:
    """Issue 5, P4: a call holds its connection, so all calls together never hold all of them."""
    settings = {"limits": {"connections": 16, "in_flight_each": 1000}, "drain_s": 0.1}
    with running(tmp_path / "home", argv=WITH_TOOLS, settings=settings) as daemon, ExitStack() as stack:
        session = daemon.session().session
        for _ in range(14):
            hang(daemon, stack, session)
        until(lambda: in_flight(daemon) == 14, what="fourteen calls hang")

        for _ in range(5):
            daemon.alive()
        line = stack.enter_context(wire.Line(daemon.port))
        line.send(wire.post(wire.message("tools/call", 1, ECHO), daemon.token, session=session))
        refused(line.answer(), "14 calls are in flight. Try again in a moment.")


def test_a_command_over_the_limit_is_not_started(tmp_path: Path) -> None:
    """Issue 5, section 6: jobs. Those that run go on, and an end makes room for the next."""
    with running(tmp_path / "home", settings={"limits": {"jobs": 3}, "drain_s": 0.1}) as daemon:
        client = daemon.session()
        said = [client.call("bash", command="cat", wait=0, stdin="").text for _ in range(3)]
        running_job = re.findall(r"\bj[a-z2-9]{8}\b", said[0])[0]
        mark = tmp_path / "mark"

        for _ in range(3):
            answer = client.call("bash", command=f"touch {mark}")
            assert answer.result["isError"] is True
            assert answer.text == (
                "The command was not started: 3 commands run already. "
                "Wait for some to end, or end them with jobs action=stop."
            )
        assert not mark.exists()
        client.call("jobs", action="stop", id=running_job)
        assert client.call("bash", command=f"touch {mark}").result["isError"] is False
        assert mark.exists()


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that runs one command at a time and has a short log, for the tests that need one or the other."""
    settings = {"limits": {"jobs": 1}, "audit": {"bytes": 64 * 1024}}
    with running(tmp_path_factory.mktemp("bounded") / "home", settings=settings) as daemon:
        yield daemon


def test_a_place_comes_back_however_a_command_fails_to_start(bounded: Daemon) -> None:
    """Ours: what is taken before the start is given back when there is none."""
    client = bounded.session()
    wrong: list[dict[str, Any]] = [
        {"command": "true", "cwd": "/no/such/folder"},
        {"command": "true", "cwd": "/etc/passwd"},
        {"command": "true", "env": {"X": "y" * 3_000_000}},
        {"command": "x" * 3_000_000},
        {"command": "exit 3"},
        {"command": "sleep 9", "timeout": 0.1},
    ]
    for arguments in wrong * 2:
        assert "commands run already" not in client.call("bash", **arguments).text
    assert client.call("bash", command="echo there").text.startswith("there")


def test_the_log_is_as_long_as_it_may_be(bounded: Daemon) -> None:
    """Issue 5, section 6: the size of the log with its older generation; the oldest records go first."""
    client = bounded.session()
    for number in range(200):
        client.call("read", path=f"/no/such/file/{number}/{'x' * 100}")
    sizes = [(bounded.home / name).stat().st_size for name in ("a2mcp.log.1", "a2mcp.log")]
    records = bounded.audit()

    assert sum(sizes) <= 64 * 1024
    assert sizes[0] > 30 * 1024
    assert "/199/" in records[-1]["args"]["path"]
    assert "/0/" not in records[0]["args"]["path"]
