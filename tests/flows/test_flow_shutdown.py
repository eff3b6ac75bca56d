"""Going down: what runs may finish, up to a bound; nothing of ours is left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import Daemon, running, until
from inflight import Later, ended, started, unpaired
from stragglers import carrying

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def marker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A mark in the environment of the daemon and of all that comes from it."""
    mark = f"MARK_{os.getpid()}_{abs(hash(tmp_path))}"
    monkeypatch.setenv(mark, "1")
    return mark


@pytest.fixture(autouse=True)
def _no_child_survives(marker: str) -> Iterator[None]:
    """Try-out 24: no child of ours survives."""
    yield
    until(lambda: carrying(marker) == [], what="the end of every child")


def refuses_connections(daemon: Daemon) -> bool:
    try:
        socket.create_connection(("127.0.0.1", daemon.port), timeout=1).close()
    except ConnectionError:
        return True
    return False


def hold(daemon: Daemon, seconds: int = 60) -> Later:
    """A command that runs until the file ``go`` is there."""
    client = daemon.session()
    before = len(started(daemon, "bash"))
    command = f"echo in; for i in $(seq {seconds * 50}); do [ -e go ] && break; sleep 0.02; done; echo done"
    call = Later(lambda: client.call("bash", command=command))
    until(lambda: len(started(daemon, "bash")) > before, what="the start of the command")
    return call


def clean(daemon: Daemon) -> None:
    """Nothing is left and nothing was said that should not be."""
    assert "Traceback" not in daemon.stderr
    assert "without completing" not in daemon.stderr
    assert not (daemon.home / "endpoint.json").exists()
    assert not (daemon.home / "operator.sock").exists()
    assert unpaired(daemon.audit()) == set()


def test_a_call_in_flight_finishes_and_nobody_new_comes_in(daemon: Daemon) -> None:
    """Issue, "HTTP edge": the listener closes at once, in-flight calls finish, exit 0."""
    idle = [daemon.session() for _ in range(5)]
    call = hold(daemon)
    daemon.process.send_signal(signal.SIGTERM)
    until(lambda: refuses_connections(daemon), what="a refused connection", seconds=2)
    assert not call.over
    assert daemon.process.poll() is None
    line = "[a2mcp] waiting up to 30 s for 1 call; a second signal (Ctrl-C) ends it\n"
    until(lambda: line in daemon.stderr, what="word of it")
    facts = json.loads(daemon.cli("status", "--json").stdout)
    # A command whose call still waits for it is no job yet.
    assert (facts["stopping"], facts["calls_in_flight"], facts["jobs_running"]) == (True, 1, 0)
    (daemon.home / "go").touch()

    answer = call.result()
    asked = time.monotonic()
    assert daemon.process.wait(10) == 0
    assert time.monotonic() - asked < 1
    assert "done" in answer.text
    assert answer.headers["connection"] == "close"
    assert [record["isError"] for record in ended(daemon, "bash")] == [False]
    clean(daemon)
    for client in idle:
        with pytest.raises(OSError):  # noqa: PT011  # Closed by the peer, one way or another.
            client.send("GET")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_with_nothing_in_flight_it_is_gone_at_once(daemon: Daemon, number: int) -> None:
    """Issue, "HTTP edge": idle keep-alive connections do not delay; D05: SIGHUP ends it as SIGTERM does."""
    for _ in range(20):
        daemon.session()
    began = time.monotonic()

    assert daemon.stop(number) == 0
    assert time.monotonic() - began < 1.5
    clean(daemon)


def test_what_still_runs_at_the_bound_is_ended_and_recorded(tmp_path: Path) -> None:
    """Issue, "HTTP edge": bound drain_s."""
    with running(tmp_path / "home", settings={"drain_s": 0.5}) as daemon:
        calls = [hold(daemon) for _ in range(3)]
        began = time.monotonic()
        assert daemon.stop() == 0
        took = time.monotonic() - began

        assert 0.4 < took < 3.5
        answers = [call.result() for call in calls]
        assert {answer.result["isError"] for answer in answers} == {True}
        assert {record["isError"] for record in ended(daemon, "bash")} == {True}
        clean(daemon)


def test_a_command_that_ignores_its_end_is_killed(tmp_path: Path) -> None:
    """Issue, "Tools": stop is TERM, then KILL, to the group."""
    with running(tmp_path / "home", settings={"drain_s": 0.2}) as daemon:
        client = daemon.session()
        deaf = Later(
            lambda: client.call("bash", command="trap '' TERM HUP INT; touch deaf; while :; do sleep 0.1; done")
        )
        until((daemon.home / "deaf").exists, what="the command")
        began = time.monotonic()
        assert daemon.stop() == 0

        assert time.monotonic() - began < 6
        assert deaf.result().result["isError"] is True
        clean(daemon)


@pytest.mark.parametrize(("first", "second"), [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGINT)])
def test_a_second_signal_ends_it_within_a_second(daemon: Daemon, first: int, second: int) -> None:
    """Issue, "HTTP edge" and try-out 24."""
    call = hold(daemon)
    daemon.process.send_signal(first)
    until(lambda: refuses_connections(daemon), what="the drain", seconds=2)
    began = time.monotonic()
    daemon.process.send_signal(second)
    assert daemon.process.wait(5) == 1

    assert time.monotonic() - began < 1.1
    assert call.failed or call.result().result["isError"] is True
    clean(daemon)


def test_a_second_signal_does_not_spare_a_command_that_ignores_its_end(daemon: Daemon) -> None:
    """Try-out 24: no child of ours survives, however short the end is."""
    client = daemon.session()
    Later(lambda: client.call("bash", command="trap '' TERM HUP INT; touch deaf; while :; do sleep 0.1; done"))
    until((daemon.home / "deaf").exists, what="the command")
    daemon.process.send_signal(signal.SIGTERM)
    until(lambda: refuses_connections(daemon), what="the drain", seconds=2)
    daemon.process.send_signal(signal.SIGTERM)

    assert daemon.process.wait(5) == 1


def test_jobs_in_the_background_end_with_the_daemon_and_may_tidy_up(daemon: Daemon) -> None:
    """Issue, "HTTP edge": no child of ours survives; TERM comes before KILL."""
    command = "trap 'echo tidied > tidied; exit 0' TERM; touch up; while :; do sleep 0.05; done"
    handed_back = daemon.session().call("bash", command=command, wait=0.1)
    assert handed_back.result["isError"] is False
    until((daemon.home / "up").exists, what="the job")

    assert daemon.stop() == 0
    assert (daemon.home / "tidied").read_text() == "tidied\n"
    clean(daemon)


def test_the_operator_ends_it_too(daemon: Daemon) -> None:
    """Issue, "Operator channel": a2mcp stop waits until it is gone."""
    call = hold(daemon)
    stop = Later(lambda: daemon.cli("stop"))
    until(lambda: refuses_connections(daemon), what="the drain")
    assert not stop.over
    (daemon.home / "go").touch()

    assert stop.result().returncode == 0
    assert "done" in call.result().text
    assert daemon.process.wait(5) == 0
    clean(daemon)


def test_a_request_that_comes_while_it_stops_is_told_so(daemon: Daemon) -> None:
    """Issue, "HTTP edge": on a connection that is still there, 503 and a hint, then closed."""
    call = hold(daemon)
    ping = b'{"jsonrpc":"2.0","id":9,"method":"ping"}'
    head = (
        f"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {daemon.token}\r\n"
        f"mcp-session-id: {daemon.session().session}\r\nContent-Length: {len(ping)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as half:
        half.sendall(head.encode())
        until(daemon.session, what="a round of the loop")
        daemon.process.send_signal(signal.SIGTERM)
        until(lambda: refuses_connections(daemon), what="the drain", seconds=2)
        half.sendall(ping)
        said = half.recv(65536)
    (daemon.home / "go").touch()

    assert said.startswith(b"HTTP/1.1 503")
    assert b"stopping" in said
    assert b"retry-after: 1" in said.lower()
    assert "done" in call.result().text
    assert daemon.process.wait(5) == 0


@pytest.mark.slow
@pytest.mark.parametrize("signals", [(signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)])
def test_twenty_sessions_most_of_them_abandoned(daemon: Daemon, signals: tuple[int, ...]) -> None:
    """Try-out 24, as far as there are no open streams."""
    sessions = [daemon.session() for _ in range(20)]
    for client in sessions[:15]:
        client.close()
    call = Later(lambda: sessions[19].call("bash", command="sleep 1; echo done"))
    until(lambda: len(started(daemon, "bash")) == 1, what="the start")
    began = time.monotonic()
    for number in signals:
        daemon.process.send_signal(number)
        until(lambda: refuses_connections(daemon), what="the drain", seconds=2)

    code = daemon.process.wait(10)
    took = time.monotonic() - began
    if len(signals) == 1:
        assert code == 0
        assert took < 3
        assert "done" in call.result().text
        clean(daemon)
    else:
        assert took < 1.5
        assert "Traceback" not in daemon.stderr


def test_a_terminal_that_closes_is_in_no_hurry(daemon: Daemon) -> None:
    """D05: SIGHUP comes once from the terminal and once from its shell; what runs may finish all the same."""
    call = hold(daemon)
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: refuses_connections(daemon), what="the drain", seconds=2)
    daemon.process.send_signal(signal.SIGHUP)
    assert not call.over
    (daemon.home / "go").touch()

    assert "done" in call.result().text
    assert daemon.process.wait(5) == 0
    clean(daemon)
