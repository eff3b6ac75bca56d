"""Promise P6 after ``kill -9``: what a killed daemon left is found at the next start, told, and ended when somebody says so."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from harness import Daemon, running, until
from inflight import Later, started
from processes import alive
from stragglers import WAYS, carrying, having, leaving
from watchers import operator

from a2mcp.host import marks

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="Linux sees who was left behind")


SOME = 71_000_000 + os.getpid() % 1000 * 1000
"""Seconds that nobody else sleeps for."""


def asleep(first: int, last: int) -> set[int]:
    """The processes that sleep for so many seconds."""
    # PERF: to look at every process for each number would take longer than the rest of a test.
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                argv = (folder / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                if argv[-2:-1] == [b"sleep"] and argv[-1].isdigit() and first <= int(argv[-1]) <= last:
                    found.add(int(folder.name))
    return found


@pytest.fixture
def marker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A mark in the environment of all daemons of the test and of all that comes from them; nobody is left at the end."""
    mark = f"MARK_{os.getpid()}_{abs(hash(tmp_path))}"
    monkeypatch.setenv(mark, "1")
    yield mark
    left = {*carrying(mark), *asleep(SOME, SOME + 102)}
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert left == set()


def killed(daemon: Daemon) -> None:
    """Kill it as nothing can be prepared for."""
    daemon.process.kill()
    daemon.process.wait(10)


def jobs_of(daemon: Daemon) -> list[dict[str, Any]]:
    return list(operator(daemon, "GET", "/jobs")[1])


def orphans_of(daemon: Daemon) -> list[dict[str, Any]]:
    return [one for one in jobs_of(daemon) if one["state"] == "orphan"]


def test_everybody_who_is_left_is_found_listed_and_ended(tmp_path: Path, marker: str) -> None:
    """Rows C09, D03, B09: the lock is free at once, the next start needs no hand, and nobody is overlooked."""
    home = tmp_path / "home"
    with running(home) as first:
        client = first.session()
        for number, way in enumerate(WAYS.values()):
            client.call("bash", command=leaving(way, SOME + number))
        command = f"exec sleep {SOME + 100}"
        job = client.call("bash", command=command, wait=0).result["structuredContent"]["jobId"]
        command = f"setsid env -i sleep {SOME + 101} & sleep {SOME + 102}; : --password planted-7fKq"
        waiting = Later(lambda: first.session().call("bash", command=command))
        until(lambda: len(asleep(SOME + 101, SOME + 102)) == 2, what="a call that nobody has written down")
        killed(first)
        assert waiting.failed

    left = asleep(SOME, SOME + 102) | set(carrying(marker))
    assert len(left) >= len(WAYS) + 3
    with running(home) as second:
        warning = f"a daemon that was killed left {len(WAYS) + 2} command(s) running"
        until(lambda: warning in second.stderr, what="a warning")
        found = orphans_of(second)
        assert {pid for one in found for pid in one["processes"]} == left
        assert len(found) == len(WAYS) + 2
        assert [one["processes"] for one in found if one["id"] == job] == [having("sleep", str(SOME + 100))]
        assert any(str(SOME + 102) in one["command"] for one in found)
        # Of a call that was never written down, what the system shows: without what is a secret.
        assert "--password <secret>" in json.dumps(found)
        assert "planted-7fKq" not in json.dumps(found)
        assert json.loads(second.cli("status", "--json").stdout)["orphans"] == len(found)
        assert f"orphans            {len(found)}, of a daemon that was killed" in second.cli("status").stdout

        done = second.cli("jobs", *(word for one in found for word in ("--stop", one["id"])))
        assert done.stdout.splitlines() == [f"ended {one['id']}" for one in found]
        assert carrying(marker) == [second.process.pid]
        assert asleep(SOME, SOME + 102) == set()
        assert orphans_of(second) == []
        assert operator(second, "GET", "/status")[1]["orphans"] == 0
        assert second.stop() == 0


def test_an_orphan_is_ended_by_a_caller_or_lost_when_it_ends_by_itself(tmp_path: Path, marker: str) -> None:
    """P6: stop ends the whole of it, not only whom the first look saw; TERM comes first.

    Row B09: state "lost"; nobody saw the exit code. One whose shell had ended has it.
    """
    home = tmp_path / "home"
    with running(home) as first:
        client = first.session()
        client.call("bash", command="until [ -e go ]; do sleep 0.02; done", wait=0)
        client.call("bash", command="(setsid bash -c 'until [ -e go ]; do sleep 0.02; done' &) >/dev/null 2>&1; exit 4")
        # Nobody reads its output any more: what its shell says of the others would be its end.
        script = "exec 2>/dev/null; trap 'echo tidied > tidied; exit' TERM; until [ -e more ]; do sleep 0.02; done; (setsid sleep 72 &); touch on; wait; sleep 72"
        job = client.call("bash", command=script, wait=0).result["structuredContent"]["jobId"]
        killed(first)
    with running(home) as second:
        assert len(until(lambda: orphans_of(second), what="the orphans")) == 3
        (home / "go").touch()
        until(lambda: [one["id"] for one in orphans_of(second)] == [job], what="the end of the two others")
        others = [(one["state"], one["exit_code"]) for one in jobs_of(second) if one["id"] != job]
        assert others == [("lost", None), ("ended", 4)]

        (home / "more").touch()
        until((home / "on").exists, what="one more process")
        answer = second.session().call("jobs", action="stop", id=job)
        assert answer.result["structuredContent"]["state"] == "ended"
        assert (home / "tidied").read_text() == "tidied\n"
        assert carrying(marker) == [second.process.pid]
        assert second.stop() == 0


def test_a_daemon_that_is_killed_twice_loses_nobody(tmp_path: Path, marker: str) -> None:
    """P5 and P6: an orphan of an orphan's daemon is still found."""
    home = tmp_path / "home"
    for _ in range(2):
        with running(home) as daemon:
            daemon.session().call("bash", command="setsid sleep 73 >/dev/null 2>&1 &")
            killed(daemon)
    with running(home) as third:
        found = until(lambda: orphans_of(third), what="the orphans")
        assert len(found) == 2
        client = third.session()
        for one in found:
            client.call("jobs", action="stop", id=one["id"])
        assert carrying(marker) == [third.process.pid]
        assert third.stop() == 0


def test_what_the_daemon_ran_for_itself_is_ended_by_the_next_start(tmp_path: Path, marker: str) -> None:
    """P6: a search whose daemon is gone serves nobody."""
    home, tools = tmp_path / "home", tmp_path / "tools"
    tools.mkdir()
    (tools / "rg").write_text("#!/bin/sh\ntouch searching\nexec sleep 74\n")
    (tools / "rg").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        with running(home) as first:
            client = first.session()
            Later(lambda: client.call("grep", pattern="x"))
            until((home / "searching").exists, what="the search")
            killed(first)
        (searcher,) = carrying(marker)
        with running(home) as second:
            until(
                lambda: not alive(searcher) and carrying(marker) == [second.process.pid], what="the end of the searcher"
            )
            assert orphans_of(second) == []
            (home / "searching").unlink()
            client = second.session()
            Later(lambda: client.call("grep", pattern="x"))
            until((home / "searching").exists, what="a search")
            second.process.send_signal(signal.SIGTERM)
            until(lambda: "waiting up to" in second.stderr, what="the drain")
            assert second.stop() == 1
        assert carrying(marker) == []


def test_the_orphans_of_others_are_nobodys_business(
    tmp_path: Path, marker: str, request: pytest.FixtureRequest
) -> None:
    """Row D07: another home, a home that had the same path, and a number that was given to a stranger."""
    home, seconds = tmp_path / "home", str(SOME + 200)
    home.mkdir(mode=0o700)
    others = []
    for mark in (marks.home_of(tmp_path) | 7, marks.home_of(home) ^ 1 << 40 | 7, 0):
        with marks.wearing(mark) if mark else contextlib.nullcontext():
            others.append(sleeper(seconds, request))
    assert [marks.of(other.pid) is None for other in others] == [False, False, True]
    with running(home) as first:
        job = first.session().call("bash", command=f"exec sleep {seconds}", wait=0).result["structuredContent"]["jobId"]
        ours = until(lambda: {*having("sleep", seconds)} - {other.pid for other in others}, what="the command")
        killed(first)
    (pid,) = ours
    os.kill(pid, signal.SIGKILL)
    # Its number is a stranger's now, as far as what is written down goes.
    path = home / "jobs" / job / "meta.json"
    record = json.loads(path.read_bytes())
    record["pid"] = record["identity"]["pid"] = others[2].pid
    path.write_bytes(msgspec.json.encode(record))
    with running(home) as second:
        assert [one["state"] for one in jobs_of(second)] == ["lost"]
        stopped = second.session().call("jobs", action="stop", id=job)
        assert stopped.result["structuredContent"]["state"] == "lost"
        assert second.stop() == 0
        assert "was killed" not in second.stderr
    assert [other.poll() for other in others] == [None] * 3


def sleeper(seconds: str, request: pytest.FixtureRequest) -> subprocess.Popen[bytes]:
    """A process that sleeps until the end of the test, whatever it finds."""
    sleeping = subprocess.Popen(["sleep", seconds])
    request.addfinalizer(sleeping.wait)
    request.addfinalizer(sleeping.kill)
    return sleeping


def test_a_daemon_that_a_command_of_its_home_has_started_is_no_orphan(tmp_path: Path, marker: str) -> None:
    """Ours: it was started with the mark of that command."""
    home = tmp_path / "home"
    with running(home) as first:
        mark = int(first.session().call("bash", command="ulimit -R").text.split("\n")[0])
        assert marks.is_of(marks.home_of(home), mark)
        killed(first)
    second = Daemon(home)
    try:
        with marks.wearing(mark):
            second.start()
        assert second.session().call("bash", command="echo on").text.startswith("on\n")
        assert jobs_of(second) == []
        assert second.stop() == 0
        assert len(started(second, "bash")) == 2
    finally:
        second.kill()
