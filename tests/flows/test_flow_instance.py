"""One daemon per home, its port and token, and the surroundings it must put up with."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import Client, Daemon, lasting_port, running, until
from inflight import WITH_TOOLS, Later, started

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One for the tests that leave it running; its port was written by hand."""
    with running(tmp_path_factory.mktemp("shared") / "home", settings={"port": 0}) as started:
        yield started


@pytest.fixture
def daemon(shared: Daemon) -> Iterator[Daemon]:
    """The same, whatever its token is after the test."""
    yield shared
    shared.learn()


def test_a_second_daemon_says_who_serves_and_leaves(daemon: Daemon) -> None:
    """Issue, "One instance": its own exit code; the first one is not disturbed."""
    second = daemon.cli("serve")

    assert second.returncode == 3
    assert str(daemon.port) in second.stderr
    assert "Traceback" not in second.stderr
    daemon.alive()
    assert json.loads((daemon.home / "endpoint.json").read_text())["pid"] == daemon.process.pid


def test_the_first_start_keeps_its_port_for_the_next(tmp_path: Path) -> None:
    """Issue, "Configuration": a client's settings survive restarts, token and port."""
    home = tmp_path / "home"
    with running(home) as first:
        kept = json.loads((home / "a2mcp.json").read_text())
        assert kept["port"] == first.port
        assert kept["token"] == first.token
        assert first.stop() == 0
    # What the system gave to the first it may have given to somebody else by now, and then a warning says so.
    with running(home) as second:
        assert second.port == first.port or f"port {first.port} is taken" in second.stderr
        assert second.token == first.token
        assert json.loads((home / "a2mcp.json").read_text()) == kept


def test_a_port_is_kept_over_a_stop_and_a_kill(tmp_path: Path) -> None:
    """Issue, "Configuration": it is free at once, and nobody is warned."""
    settings = {"port": lasting_port()}
    with running(tmp_path / "home", settings=settings) as daemon:
        for end in (daemon.stop, daemon.kill):
            end()
            daemon.start()
            assert daemon.port == settings["port"]
        assert "warning" not in daemon.stderr


def test_port_zero_written_by_hand_stays_random(daemon: Daemon) -> None:
    """Issue, "Configuration": it is not replaced in the file."""
    daemon.alive()
    assert json.loads((daemon.home / "a2mcp.json").read_text())["port"] == 0


def test_a_taken_port_is_not_the_end(tmp_path: Path) -> None:
    """D04: falls back to another port with a warning, and the endpoint file has the right one."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with running(tmp_path / "home", settings={"port": port}) as daemon:
            daemon.alive()
            assert daemon.port != port
            assert str(port) in daemon.stderr
            assert "warning" in daemon.stderr
            assert str(daemon.port) in daemon.endpoint["url"]
            assert json.loads((daemon.home / "a2mcp.json").read_text())["port"] == port


def test_rotating_kills_the_old_token_at_once_and_no_call(daemon: Daemon, tmp_path: Path) -> None:
    """Issue, "Operator channel": rotate."""
    client, idle = daemon.session(), daemon.session()
    go = tmp_path / "go"
    call = Later(lambda: client.call("bash", command=f"until [ -e {go} ]; do sleep 0.02; done; echo done"))
    until(lambda: client.session in [record["sid"] for record in started(daemon, "bash")], what="the start")

    new = daemon.cli("rotate")
    token = json.loads((daemon.home / "endpoint.json").read_text())["token"]
    assert new.returncode == 0
    assert token != daemon.token
    assert json.loads((daemon.home / "a2mcp.json").read_text())["token"] == token
    assert idle.ask("ping").status == 401
    fresh = Client(daemon.port, token)
    fresh.initialize()
    idle_again = Client(daemon.port, token)
    idle_again.session = idle.session
    assert idle_again.ask("ping").result == {}, "sessions stay"
    fresh.close()
    idle_again.close()
    go.touch()

    assert "done" in call.result().text


def test_its_stacks_are_shown_on_request(daemon: Daemon) -> None:
    """Issue, "Actors": SIGUSR1 dumps all stacks; and it goes on."""
    before = daemon.stderr.count("Thread 0x")
    daemon.process.send_signal(signal.SIGUSR1)
    until(lambda: daemon.stderr.count("Thread 0x") >= before + 6, what="the stacks of each actor")

    daemon.alive()
    assert daemon.process.poll() is None


def test_it_survives_a_stop_and_a_continue(daemon: Daemon) -> None:
    """D05: SIGSTOP and SIGCONT."""
    daemon.process.send_signal(signal.SIGSTOP)
    daemon.process.send_signal(signal.SIGCONT)

    daemon.alive()


def test_nobody_has_to_read_what_it_says(tmp_path: Path) -> None:
    """D05: closed stdout and stderr, whose reading ends are gone."""
    home = tmp_path / "home"
    daemon = Daemon(home)
    reader, writer = os.pipe()
    os.close(reader)
    daemon.process = subprocess.Popen(
        [sys.executable, "-m", "a2mcp", "serve"], cwd=home, env=daemon.environment, stdout=writer, stderr=writer
    )
    os.close(writer)
    try:
        _connect(daemon)
        assert daemon.client(token="wrong").ask("ping").status == 401, "it complains, and nobody hears it"
        daemon.alive()
        daemon.process.send_signal(signal.SIGUSR1)
        daemon.alive()
        daemon.process.terminate()
        assert daemon.process.wait(10) == 0
    finally:
        daemon.kill()


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", "<&-", ">&-", "2>&-"])
def test_it_starts_without_the_three_usual_descriptors(tmp_path: Path, closed: str) -> None:
    """D10: else a socket gets the number, and what is printed goes to a client."""
    home = tmp_path / "home"
    daemon = Daemon(home)
    daemon.process = subprocess.Popen(
        ["bash", "-c", f"exec {sys.executable} -m a2mcp serve {closed}"],
        cwd=home, env=daemon.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _connect(daemon)
        for number in range(3):
            opened = Path(f"/proc/{daemon.process.pid}/fd/{number}").readlink()
            assert not str(opened).startswith("socket:")
        client = daemon.session()
        assert "works" in client.call("bash", command="echo works; cat; echo err >&2").text
        assert daemon.client(token="wrong").ask("ping").status == 401
        daemon.process.terminate()
        assert daemon.process.wait(10) == 0
    finally:
        daemon.kill()


def test_few_descriptors_are_enough_or_said_to_be_too_few(tmp_path: Path) -> None:
    """D10: RLIMIT_NOFILE 64, which cannot be raised."""
    daemon = Daemon(tmp_path / "home")
    try:
        daemon.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        daemon.alive()
        assert "open files" in daemon.stderr
        assert "works" in daemon.session().call("bash", command="echo works").text
        crowd = [daemon.client() for _ in range(80)]
        for client in crowd[:40]:
            client._connection.connect()
        until(lambda: daemon.descriptors <= 64, what="a bound on descriptors")
        for client in crowd:
            client.close()
        until(lambda: _alive(daemon), what="service after the crowd")
        assert daemon.stop() == 0
    finally:
        daemon.kill()


def _alive(daemon: Daemon) -> bool:
    try:
        daemon.alive()
    except OSError:
        return False
    return True


def _connect(daemon: Daemon) -> None:
    path = daemon.home / "endpoint.json"
    until(path.exists, what="the endpoint file")
    endpoint = json.loads(path.read_text())
    daemon.port = int(endpoint["bridge_url"].rsplit(":", 1)[1].strip("/"))
    daemon.token = endpoint["token"]
    until(lambda: _alive(daemon), what="an answer")


def test_a_pipe_that_nobody_reads_does_not_stop_it(tmp_path: Path) -> None:
    """D06: stderr is full; every failing tool would say more."""
    daemon = Daemon(tmp_path / "home", argv=WITH_TOOLS)
    daemon.process = subprocess.Popen(
        WITH_TOOLS, cwd=daemon.home, env=daemon.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert daemon.process.stderr is not None
    try:
        _connect(daemon)
        client = daemon.session()
        for number in range(400):
            tool = "exit" if number % 2 else "exit-in-worker"
            assert client.call(tool, name="ValueError").result["isError"] is True
        daemon.alive()
        daemon.process.terminate()
        assert daemon.process.wait(10) == 0
        said = daemon.process.stderr.read()
        assert len(said) > 40_000
        assert said.count(b"Traceback") < 400, "it was full, and what did not fit was dropped"
    finally:
        daemon.process.stderr.close()
        daemon.kill()
