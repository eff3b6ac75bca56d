"""Promise P6, while a daemon lives and when it goes: nothing that it started outlives its stated end, however it hides."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harness import ROOT, Client, Daemon, until
from harness import running as serving
from inflight import Later, ended, started, unpaired
from stragglers import WAYS, carrying, having, leaving, ways

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="Linux sees who was left behind")

_numbers = itertools.count(1_000_000 + os.getpid() % 1000 * 1000)


@pytest.fixture
def number() -> Iterator[int]:
    """The seconds of a ``sleep`` that is this test's alone; none is left at its end."""
    mine = next(_numbers)
    yield mine
    left = having("sleep", str(mine))
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


@pytest.fixture
def marker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A mark in the environment of the daemon and of all that comes from it."""
    mark = f"MARK_{os.getpid()}_{abs(hash(tmp_path))}"
    monkeypatch.setenv(mark, "1")
    yield mark
    until(lambda: carrying(mark) == [], what="the end of everybody", seconds=5)


def asleep(number: int) -> list[int]:
    return having("sleep", str(number))


def listed(client: Client, job: str) -> Any:
    jobs = client.call("jobs", action="list").result["structuredContent"]["jobs"]
    return next(one for one in jobs if one["id"] == job)


def job_in(text: str) -> str:
    found = re.search(r"it is job (j[a-z0-9]{8})\.", text)
    assert found, text
    return found[1]


def cancel(daemon: Daemon, client: Client, number: int) -> None:
    other = daemon.client()
    other.session = client.session
    other.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})


# --- a command that leaves something, and ends


@ways
def test_what_remains_is_named_listed_and_ended_by_stop(shared_daemon: Daemon, number: int, way: str) -> None:
    """Try-out 03: it returns at once, says who remains and lists it; P6: its stated end is ``stop``."""
    client = shared_daemon.session()
    began = time.monotonic()
    answer = client.call("bash", command=leaving(way, number))
    assert time.monotonic() - began < 3
    assert answer.result["isError"] is False
    assert answer.text.startswith("left\n")
    assert "exit code 0" in answer.text
    (pid,) = until(lambda: asleep(number), what="the one who was left")
    job = job_in(answer.text)
    assert re.search(r"background process still runs \(pid \d+ ", answer.text)
    assert client.call("bash", command="echo next").text.startswith("next\n")
    facts = listed(client, job)
    assert facts["state"] == "background"
    assert pid in facts["processes"]

    stopped = client.call("jobs", action="stop", id=job)
    assert "The command was stopped." in stopped.text
    assert asleep(number) == []
    assert listed(client, job)["state"] == "ended"


@ways
def test_a_timeout_ends_whoever_got_away_too(shared_daemon: Daemon, number: int, way: str) -> None:
    """P6: the command and all it started are ended at ``timeout``."""
    client = shared_daemon.session()
    call = Later(lambda: client.call("bash", command=f"{leaving(way, number)}; sleep 60", timeout=2))
    until(lambda: asleep(number), what="the one who was left")
    assert "timed out" in call.result().text
    assert asleep(number) == []


@ways
def test_a_cancelled_call_takes_whoever_got_away_with_it(shared_daemon: Daemon, number: int, way: str) -> None:
    """P6: cancelling ends the command and all it started."""
    client = shared_daemon.session()
    call = Later(lambda: client.call("bash", command=f"{leaving(way, number)}; sleep 60"))
    until(lambda: asleep(number), what="the one who was left")
    cancel(shared_daemon, client, 2)
    assert call.result().result["isError"] is True
    until(lambda: asleep(number) == [], what="its end")


def test_a_timeout_counts_for_what_outlived_the_command_as_well(shared_daemon: Daemon, number: int) -> None:
    """P6: the end that was stated holds when the shell is long gone."""
    answer = shared_daemon.session().call("bash", command=leaving(WAYS["own session"], number), timeout=3)
    assert "background process still runs" in answer.text
    until(lambda: asleep(number) == [], what="its end")


def test_what_ends_by_itself_is_seen_to_end(shared_daemon: Daemon) -> None:
    """Row B09: the job's end and its exit code."""
    client = shared_daemon.session()
    answer = client.call("bash", command="setsid sleep 0.6 >/dev/null 2>&1 & exit 3")
    assert "background process still runs" in answer.text
    waited = client.call("jobs", action="wait", id=job_in(answer.text), timeout=20)
    facts = waited.result["structuredContent"]
    assert (facts["state"], facts["exitCode"], facts["backgroundRemains"]) == ("ended", 3, False)


def test_what_is_gone_a_moment_later_is_not_mentioned(shared_daemon: Daemon) -> None:
    """Ours: it costs the call that moment, and no more."""
    client = shared_daemon.session()
    answers = [client.call("bash", command="setsid sleep 0.02 >/dev/null 2>&1 & echo on") for _ in range(20)]
    mentioned = ["background" in answer.text for answer in answers]
    assert mentioned == ["jobId" in answer.result["structuredContent"] for answer in answers]
    assert sum(mentioned) < 5, "on a busy machine one or another sleeps for longer than that moment"


def test_the_operator_ends_what_remains(shared_daemon: Daemon, number: int) -> None:
    """Ours: ``a2mcp jobs --stop``."""
    answer = shared_daemon.session().call("bash", command=leaving(WAYS["orphaned"], number))
    job, (pid,) = job_in(answer.text), until(lambda: asleep(number), what="the one who was left")
    row = next(line for line in shared_daemon.cli("jobs").stdout.splitlines() if line.startswith(job))
    assert row.split("\t")[1:3] == ["background", str(pid)]

    done = shared_daemon.cli("jobs", "--stop", job)
    assert (done.returncode, done.stdout) == (0, f"ended {job}\n")
    assert asleep(number) == []
    refused = shared_daemon.cli("jobs", "--stop", "jnothere22")
    assert refused.returncode == 1
    assert "There is no job" in refused.stderr


def test_each_command_has_its_own_stragglers(shared_daemon: Daemon, number: int) -> None:
    """Ours: stopping one job spares the others."""
    client = shared_daemon.session()
    other = next(_numbers)
    jobs = [job_in(client.call("bash", command=leaving(WAYS["own session"], n)).text) for n in (number, other)]
    client.call("jobs", action="stop", id=jobs[0])
    assert asleep(number) == []
    until(lambda: len(asleep(other)) == 1, what="the other's")
    client.call("jobs", action="stop", id=jobs[1])
    assert asleep(other) == []


def test_a_daemon_that_a_command_starts_belongs_to_it(shared_daemon: Daemon, tmp_path: Path) -> None:
    """P6: the daemon of another home, too; TERM lets it go in order."""
    client, home = shared_daemon.session(), tmp_path / "inner"
    answer = client.call(
        "bash", command=f"{sys.executable} -m a2mcp start", env={"A2MCP_HOME": str(home), "PYTHONPATH": str(ROOT)}
    )
    assert answer.result["isError"] is False
    pid = json.loads((home / "endpoint.json").read_text())["pid"]
    job = job_in(answer.text)
    assert listed(client, job)["processes"] == [pid]
    client.call("jobs", action="stop", id=job)
    assert not Path(f"/proc/{pid}").exists()
    assert not (home / "endpoint.json").exists()


# --- whoever is given to us


def zombies(daemon: Daemon) -> int:
    found = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = Path(entry.path, "stat").read_text().rsplit(")", 1)[1].split()
                found += fields[0] == "Z" and int(fields[1]) == daemon.process.pid
    return found


def test_orphans_of_a_running_command_are_buried(shared_daemon: Daemon) -> None:
    """Row B09: no zombies, also of those who were never children of ours."""
    client = shared_daemon.session()
    command = "for i in $(seq 150); do (setsid true &); (true &); done; echo made; exec sleep 61"
    job = client.call("bash", command=command, wait=0).result["structuredContent"]["jobId"]
    until(lambda: "made" in client.call("jobs", action="output", id=job).text, what="the orphans")
    until(lambda: zombies(shared_daemon) == 0, what="the end of the last zombie")
    client.call("jobs", action="stop", id=job)


def test_exit_codes_are_those_of_the_commands(shared_daemon: Daemon) -> None:
    """Ours: who buries orphans must not take the exit codes of others."""
    codes = list(range(60))

    def one(code: int) -> Any:
        client = shared_daemon.session()
        answer = client.call("bash", command=f"(setsid sleep 0.0{code % 9} &) >/dev/null 2>&1; (exit 99) & exit {code}")
        client.close()
        return answer.result["structuredContent"]["exitCode"]

    calls = [Later(partial(one, code)) for code in codes]
    assert [call.result() for call in calls] == codes


# --- the end of the daemon


def leave_all(daemon: Daemon) -> list[str]:
    """Leave somebody behind in each of the ways."""
    client = daemon.session()
    return [client.call("bash", command=leaving(way, next(_numbers))).text for way in WAYS.values()]


def test_nobody_outlives_the_daemon(daemon: Daemon, marker: str) -> None:
    """P6: the end of the daemon is the last of the stated ends; TERM comes first, also to whoever got away."""
    leave_all(daemon)
    tidy = "trap 'echo tidied > tidied; exit' TERM; touch up; while :; do sleep 0.05; done"
    daemon.session().call("bash", command=f'setsid bash -c "{tidy}" >/dev/null 2>&1 &')
    until((daemon.home / "up").exists, what="the one with a trap")
    busy = daemon.session()
    call = Later(lambda: busy.call("bash", command="setsid sleep 62 >/dev/null 2>&1 & touch on; sleep 0.5; echo done"))
    until((daemon.home / "on").exists, what="the call in flight")

    assert daemon.stop() == 0
    assert "done" in call.result().text
    assert (daemon.home / "tidied").read_text() == "tidied\n"
    assert carrying(marker) == []
    assert "Traceback" not in daemon.stderr
    assert unpaired(daemon.audit()) == set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_leaves_nobody_behind_either(daemon: Daemon, marker: str, number: int) -> None:
    """Try-out 24: within a second, and not even whoever is deaf and got away."""
    leave_all(daemon)
    client = daemon.session()
    Later(lambda: client.call("bash", command=f"{leaving(WAYS['deaf'], next(_numbers))}; touch on; exec sleep 63"))
    until((daemon.home / "on").exists, what="the call in flight")
    daemon.process.send_signal(number)
    until(lambda: "waiting up to" in daemon.stderr, what="the drain")
    began = time.monotonic()
    daemon.process.send_signal(number)

    assert daemon.process.wait(5) == 1
    assert time.monotonic() - began < 2
    assert carrying(marker) == []


def test_a_hundred_commands_and_then_the_end(tmp_path: Path, marker: str) -> None:
    """Row B08: each has its end on record, and no process of ours is left."""
    with serving(tmp_path / "home", settings={"drain_s": 0.5}) as daemon:
        ways = itertools.cycle([*WAYS.values(), "{} &"])

        session = daemon.session().session

        def one(way: str) -> None:
            client = daemon.client()
            client.session = session
            client.call("bash", command=f"{leaving(way, 64)}; sleep 64")

        calls = [Later(partial(one, next(ways))) for _ in range(100)]
        until(lambda: len(started(daemon, "bash")) == 100, what="the start of a hundred commands", seconds=60)
        assert daemon.stop(seconds=30) == 0

        until(lambda: all(call.over for call in calls), what="an answer to each")
        assert len(ended(daemon, "bash")) == 100
        assert {record["ended"] for record in ended(daemon, "bash")} == {"aborted"}
        assert unpaired(daemon.audit()) == set()
        assert carrying(marker) == []
        assert "Traceback" not in daemon.stderr


def test_a_client_that_is_gone_changes_nothing(daemon: Daemon, marker: str) -> None:
    """Row B13: a disconnect is no cancel; what it started ends as it was to end, with the daemon at the latest."""
    number = next(_numbers)
    client = daemon.session()
    Later(lambda: client.call("bash", command=f"{leaving(WAYS['own session'], number)}; sleep 0.5; touch through"))
    until(lambda: asleep(number), what="the one who was left")
    client.close()
    until((daemon.home / "through").exists, what="the end of the command")
    until(lambda: len(ended(daemon, "bash")) == 1, what="its record")
    (facts,) = json.loads(daemon.cli("jobs", "--json").stdout)
    assert (facts["state"], facts["processes"]) == ("background", asleep(number))
    assert daemon.stop() == 0
    assert asleep(number) == []


def test_who_can_be_told_from_nobody_ends_with_the_daemon(daemon: Daemon, marker: str) -> None:
    """P6, the limit: a session of its own, and the mark overwritten."""
    number = next(_numbers)
    client = daemon.session()
    hidden = f"setsid -f bash -c 'ulimit -R 200000; touch up; exec sleep {number}' >/dev/null 2>&1; until [ -e up ]; do :; done"
    assert "background" not in client.call("bash", command=hidden).text
    until(lambda: "belongs to no command that can be told; it ends with the daemon" in daemon.stderr, what="a warning")
    until(lambda: len(asleep(number)) == 1, what="the one who hides")
    assert daemon.stop() == 0
    assert asleep(number) == []
