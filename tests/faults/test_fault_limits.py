"""A system that gives too little: descriptors, memory, a place to print to. A start works or says so; service goes on."""

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

import psutil
import pytest
from harness import Daemon, running, until
from state import require_clear_refusal, require_usual_start

from a2mcp.http.server.listen import LEAST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SERVE = [sys.executable, "-m", "a2mcp", "serve"]
PYTHON_NEEDS = 7
"""Descriptors without which Python itself does not get as far as our code."""
MIB = 1 << 20

limited = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="prlimit is Linux's")
full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")


def started(home: Path, **limits: int) -> tuple[str, int, str]:
    """Start a daemon under limits (``n=20``, as of ulimit) and stop it if it serves: its greeting, code and last words."""
    daemon = Daemon(home)

    wanted = [f"ulimit -{letter} {value}" for letter, value in limits.items()]
    with subprocess.Popen(
        ["bash", "-c", " && ".join([*wanted, 'exec "$@"']), "bash", *SERVE],
        cwd=home, env=daemon.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        greeting = process.stdout.readline().decode()
        if greeting:
            process.terminate()
        _, said = process.communicate(timeout=20)
    return greeting, process.returncode, said.decode()


# --- descriptors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [PYTHON_NEEDS, 10, 13, 16, 20, 22, 30, LEAST])
def test_a_start_with_a_handful_of_descriptors_is_a_sentence(tmp_path: Path, limit: int) -> None:
    """Row D10: RLIMIT_NOFILE, wherever on the way it is met."""
    greeting, code, said = started(tmp_path / "home", n=limit)

    assert greeting == ""
    require_clear_refusal(code, said)
    assert "Raise the limit on open files with `ulimit -n`." in said


def test_the_least_that_is_let_start_is_enough_for_a_command(tmp_path: Path) -> None:
    """Row D10, ours: whoever is let start can serve."""
    daemon = Daemon(tmp_path / "home")
    daemon.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (LEAST + 1, LEAST + 1)))
    try:
        client = daemon.session()
        for number in range(3):
            assert client.call("bash", command=f"echo {number}").text.startswith(str(number))
        assert client.call("bash", command="sleep 60", wait=0).result["isError"] is False
        assert client.call("jobs", action="list").result["isError"] is False
        status = json.loads(daemon.cli("status", "--json").stdout)
        assert status["audit"]["failures"] == 0
        client.close()
        assert daemon.stop() == 0
        assert "internal error" not in daemon.stderr
    finally:
        daemon.kill()


class Starved:
    """A daemon that has used up its descriptors, and a client that was there before."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.client = daemon.session()
        self.client.call("bash", command="true")
        daemon.cli("status")
        until((daemon.home / "events.db-wal").exists, what="the store of events is open")
        self._pid = daemon.process.pid
        self._limits = resource.prlimit(self._pid, resource.RLIMIT_NOFILE)
        taken = {int(entry.name) for entry in Path(f"/proc/{self._pid}/fd").iterdir()}
        # A limit below what is open closes nothing and gives nothing more.
        self._allow(next(number for number in range(4096) if number not in taken))

    def give_back(self) -> None:
        """Let it have what it had."""
        self._allow(self._limits[0])

    def _allow(self, descriptors: int) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_NOFILE, (descriptors, self._limits[1]))


@pytest.fixture
def starved(tmp_path: Path) -> Iterator[Starved]:
    """A daemon that has used up its descriptors."""
    with running(tmp_path / "home") as daemon:
        yield Starved(daemon)


@limited
@pytest.mark.parametrize("name", ["operator.sock", "events.sock"])
def test_a_channel_without_descriptors_pauses_without_a_spin_and_without_a_flood(starved: Starved, name: str) -> None:
    """Row Z06, section 0 row 9: the operator's sockets as well as the port; and it recovers by itself."""
    daemon = starved.daemon
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(5)]
    for each in waiting:
        each.connect(str(daemon.home / name))
    until(lambda: "cannot accept connections for now" in daemon.stderr, what="the pause is told")
    said = daemon.stderr

    assert daemon.busy_share(seconds=2.5) < 0.3
    assert daemon.stderr == said, "told once, and not each second"
    assert starved.client.ask("ping").result == {}
    for each in waiting:
        each.close()
    starved.give_back()
    until(lambda: daemon.cli("status").returncode == 0, what="the channel answers again")


@limited
def test_calls_without_a_descriptor_left_are_refused_in_words_and_work_again(starved: Starved) -> None:
    """Rows B11, F11: EMFILE in a tool; the log has it all the same."""
    daemon, client = starved.daemon, starved.client
    for tool, arguments in (
        ("bash", {"command": "true"}),
        ("bash", {"command": "cat", "stdin": "x"}),
        ("read", {"path": "stderr.txt"}),
        ("write", {"path": "new", "content": "x"}),
        ("glob", {"pattern": "*"}),
        ("xfer_share", {"path": str(daemon.home)}),
    ):
        answer = client.call(tool, **arguments)
        assert answer.result["isError"] is True, (tool, answer.text)
        assert "oo many" in answer.text, (tool, answer.text)
        assert "internal error" not in answer.text
    assert "internal error" not in daemon.stderr, daemon.stderr

    starved.give_back()
    assert client.call("bash", command="echo again").text.startswith("again")
    assert client.call("write", path="new", content="x").result["isError"] is False
    begun = {record["id"] for record in daemon.audit() if record["phase"] == "start"}
    assert begun == {record["id"] for record in daemon.audit() if record["phase"] == "done"}


# --- memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [30, 45, 60, 90, 130])
def test_a_start_with_little_memory_is_a_sentence(tmp_path: Path, size: int) -> None:
    """Row D10: RLIMIT_AS, from where Python itself can start."""
    greeting, code, said = started(tmp_path / "home", v=size * 1024)

    if greeting:
        assert code == 0, said
        return
    # The C library ends a process by abort where it has no memory for the end of a thread; it was told why before.
    require_clear_refusal(1 if code == -signal.SIGABRT else code, said)


@limited
def test_a_call_that_wants_more_memory_than_there_is_costs_itself(tmp_path: Path) -> None:
    """Row Z08: MemoryError in a tool."""
    with running(tmp_path / "home") as daemon:
        client = daemon.session()
        big = daemon.home / "big.txt"
        big.write_bytes(b"x" * (40 * MIB) + b"\n")
        client.call("read", path="stderr.txt")
        client.call("edit", path=str(big), edits=[{"oldText": "y", "newText": "z"}])
        pid = daemon.process.pid
        now = psutil.Process(pid).memory_info().vms
        limits = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (now + 4 * MIB, limits[1]))
        refused = client.call("edit", path=str(big), edits=[{"oldText": "xx", "newText": "z", "all": True}])
        assert refused.result["isError"] is True
        assert client.ask("ping").result == {}
        resource.prlimit(pid, resource.RLIMIT_AS, limits)
        daemon.alive()
        assert client.call("bash", command="echo on").text.startswith("on")
        assert daemon.stop() == 0


# --- nowhere to print ---------------------------------------------------------------------------------------------


@full
@pytest.mark.parametrize("streams", [">/dev/full", "2>/dev/full", ">/dev/full 2>&1"])
def test_a_full_stdout_or_stderr_is_no_reason_not_to_serve(tmp_path: Path, streams: str) -> None:
    """Issue, item 2: /dev/full as stdout and stderr."""
    daemon = Daemon(tmp_path / "home")
    daemon.process = subprocess.Popen(
        ["bash", "-c", f"exec {sys.executable} -m a2mcp serve {streams}"],
        cwd=daemon.home, env=daemon.environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until((daemon.home / "endpoint.json").exists, what="the endpoint")
        daemon.learn()
        until(lambda: serves(daemon), what="an answer")
        assert daemon.client(token="wrong").ask("ping").status == 401, "it complains, and nobody hears it"
        assert daemon.session().call("bash", command="echo works").text.startswith("works")
        assert daemon.stop() == 0
    finally:
        daemon.kill()
    require_usual_start(daemon, token=daemon.token)


def serves(daemon: Daemon) -> bool:
    """Whether it listens already: the endpoint is there a moment before."""
    try:
        daemon.client().initialize()
    except OSError:
        return False
    return True


@full
@pytest.mark.parametrize(
    "words",
    [
        ["version"],
        ["--help"],
        ["doctor"],
        ["status", "--json"],
        ["completion", "bash"],
        ["audit"],
        ["audit", "--verify"],
    ],
)
def test_a_command_that_cannot_print_says_so(shared_daemon: Daemon, words: Sequence[str]) -> None:
    """Issue, item 2: /dev/full; not a traceback, and not success."""
    with Path("/dev/full").open("wb") as nowhere:
        done = subprocess.run(
            [sys.executable, "-m", "a2mcp", *words], cwd=shared_daemon.home, env=shared_daemon.environment,
            stdout=nowhere, stderr=subprocess.PIPE, check=False, timeout=30,
        )  # fmt: skip
    require_clear_refusal(done.returncode, done.stderr.decode())
    assert f"The system refused: {os.strerror(28)}" in done.stderr.decode()
