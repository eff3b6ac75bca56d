"""Promises P6 and P7 at the edge between the daemon and whoever it starts: a child gets three descriptors and no secret."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harness import Daemon, lasting_port, running, until
from inflight import Later
from processes import alive
from stragglers import having
from watchers import operator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="/proc shows what a process holds")

SECONDS = str(76_000_000 + os.getpid() % 1000 * 1000)
SECRET = "A2MCP_PLANTED"
TUNNEL = "https://calm-river-xyz.trycloudflare.com"

STAND_INS = {
    "rg": f"exec sleep {SECONDS}",
    "notify-send": f"exec sleep {SECONDS}",
    "dufs": f"echo Listening on: ; exec sleep {SECONDS}",
    "cloudflared": f"echo 'INF |  {TUNNEL}  |' ; exec sleep {SECONDS}",
}
"""What the programs of others print before they become something to be looked at."""


@contextlib.contextmanager
def planted(folder: Path) -> Iterator[Daemon]:
    """A daemon with connections, a log, a lock and a secret of its own, and stand-ins for what it starts."""
    tools = folder / "tools"
    tools.mkdir()
    for name, body in STAND_INS.items():
        (tools / name).write_text(f"#!/bin/bash\n{body}\n")
        (tools / name).chmod(0o755)
    settings = {
        "port": lasting_port(),
        "drain_s": 0.2,
        "approval": {"tools": {"write": "prompt"}},
        "observe": {"notify": "on"},
        "xfer": {"server": "dufs", "dufs": str(tools / "dufs"), "cloudflared": str(tools / "cloudflared")},
    }
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
            patch.setattr(Daemon, "environment", property(_with_a_secret(Daemon.environment.fget)))  # type: ignore[attr-defined]
            started = stack.enter_context(running(folder / "home", settings=settings))
        yield started
        started.stop()
        assert having("sleep", SECONDS) == []


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """One for a test that ends it."""
    with planted(tmp_path) as started:
        yield started


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One for the tests whose children nobody misses."""
    with planted(tmp_path_factory.mktemp("shared")) as started:
        yield started


@pytest.fixture
def parent(shared: Daemon) -> Iterator[Daemon]:
    """The same; whatever it has started is ended."""
    yield shared
    for pid in having("sleep", SECONDS):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not having("sleep", SECONDS), what="the end of its child")


def _with_a_secret(environment: Callable[[Any], dict[str, str]]) -> Callable[[Any], dict[str, str]]:
    return lambda daemon: environment(daemon) | {SECRET: "planted"}


def call(daemon: Daemon, tool: str, **arguments: Any) -> Later:
    client = daemon.session()
    return Later(lambda: client.call(tool, **arguments))


def targets(pid: int) -> dict[str, str]:
    """What the descriptors of a process are."""
    found = {}
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[path.name] = str(path.readlink())
    return found


KINDS: dict[str, Callable[[Daemon], object]] = {
    "bash": lambda daemon: call(daemon, "bash", command=f"exec sleep {SECONDS}"),
    "a job": lambda daemon: call(daemon, "bash", command=f"exec sleep {SECONDS}", wait=0),
    "a job with input": lambda daemon: call(daemon, "bash", command=f"exec sleep {SECONDS}", wait=0, stdin="x"),
    "what a command left": lambda daemon: call(daemon, "bash", command=f"setsid sleep {SECONDS} &"),
    "the searcher": lambda daemon: call(daemon, "grep", pattern="x"),
    "the file server": lambda daemon: call(daemon, "xfer_share", path=str(daemon.home)),
    "the tunnel": lambda daemon: operator(daemon, "POST", "/tunnel", {}),
    "the notice": lambda daemon: call(daemon, "write", path="x", content="x"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_child_holds_three_descriptors_and_no_secret(parent: Daemon, kind: str) -> None:
    """Rows B12, C06 and C09: no socket, lock, log or pipe of ours; the token in neither environment nor arguments."""
    other = parent.session()
    with socket.create_connection(("127.0.0.1", parent.port)):
        other.ask("ping")
        KINDS[kind](parent)
        (pid,) = until(lambda: having("sleep", SECONDS), what="the child")
        folder = Path(f"/proc/{pid}")
        # It opens files of its own for a moment; what it was given stays.
        held = until(lambda: len(held := targets(pid)) == 3 and held, what="three descriptors and no more")
        environment, arguments = (folder / "environ").read_bytes(), (folder / "cmdline").read_bytes()

        assert set(held) == {"0", "1", "2"}
        assert not any(target.startswith("socket:") for target in held.values())
        assert not any(target.startswith(str(parent.home / "a2mcp")) for target in held.values())
        names = {entry.partition(b"=")[0] for entry in environment.split(b"\0")}
        assert not {name for name in names if name.startswith(b"A2MCP_")}
        assert b"planted" not in environment
        for secret in (parent.token, other.session):
            assert secret
            assert secret.encode() not in environment + arguments


def test_no_child_outlives_an_orderly_stop(daemon: Daemon) -> None:
    """Promise P6: of each kind one."""
    for number, begin in enumerate(KINDS.values(), 1):
        begin(daemon)
        until(lambda number=number: len(having("sleep", SECONDS)) == number, what="one more child")
    assert daemon.stop() == 0
    assert having("sleep", SECONDS) == []


def test_a_child_that_outlives_a_killed_daemon_holds_nothing_of_its_home(daemon: Daemon) -> None:
    """Row C09: lock and port are free at once; the file server and the tunnel do not even outlive it. Of each kind one."""
    children: dict[str, int] = {}
    for kind, begin in KINDS.items():
        begin(daemon)
        (children[kind],) = until(lambda: {*having("sleep", SECONDS)} - {*children.values()}, what=f"a child: {kind}")
    port, home = daemon.port, daemon.home
    assert any("lock" in target for target in of_home(daemon.home, daemon.process.pid)), "what it has is told"
    daemon.process.kill()
    daemon.process.wait(10)
    for kind in ("the file server", "the tunnel"):
        until(lambda kind=kind: kind not in living(children), what=f"the end of {kind}")
    held = {kind: of_home(home, children[kind]) for kind in living(children)}
    assert {kind: found for kind, found in held.items() if found} == {}
    settings = json.loads((home / "a2mcp.json").read_text())
    with running(home, settings=settings) as second:
        assert second.port == port
        for kind in ("the searcher", "the notice"):
            until(lambda kind=kind: kind not in living(children), what=f"the end of {kind}")
        for one in operator(second, "GET", "/jobs")[1]:
            second.session().call("jobs", action="stop", id=one["id"])
        assert second.stop() == 0
    assert living(children) == set()


def living(children: dict[str, int]) -> set[str]:
    """The kinds of those that have not ended."""
    return {kind for kind, pid in children.items() if alive(pid)}


def of_home(home: Path, pid: int) -> list[str]:
    """What a process has open that was the daemon's: a socket, or a file of the home that takes no output of its own."""
    return [
        target for target in targets(pid).values()
        if target.startswith(("socket:", f"{home}/")) and not target.startswith(f"{home}/jobs/")
    ]  # fmt: skip


@pytest.mark.parametrize("how", [["start"], ["stdio"]])
def test_a_daemon_in_the_background_holds_nothing_of_who_started_it(tmp_path: Path, how: list[str]) -> None:
    """Row B12, the other way round: ``a2mcp start``, and ``a2mcp stdio`` where no daemon runs."""
    idle = Daemon(tmp_path / "home")
    reader, writer = os.pipe()
    try:
        asked = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' if how == ["stdio"] else b""
        done = subprocess.run(
            [sys.executable, "-m", "a2mcp", *how], cwd=idle.home, env=idle.environment, input=asked,
            pass_fds=(writer,), capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        os.close(writer)
        assert done.returncode == 0, done.stderr
        # Whoever held the other end would keep this from ending.
        assert os.read(reader, 1) == b""
        pid = json.loads((idle.home / "endpoint.json").read_text())["pid"]
        standard = {targets(pid)[name] for name in ("0", "1", "2")}
        assert standard == {"/dev/null", str(idle.home / "daemon.log")}
    finally:
        os.close(reader)
        with contextlib.suppress(OSError):
            operator(idle, "POST", "/stop")
        until(lambda: not (idle.home / "endpoint.json").exists(), what="its end")
