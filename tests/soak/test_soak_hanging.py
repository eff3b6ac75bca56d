"""Calls that hang: they cost an object each, and nobody else notices."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from crowd import Caller, call, callers, drive
from figures import Figures, in_flight, of, threads
from harness import Daemon, running, until
from inflight import WITH_TOOLS, unpaired
from others import Others

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HANGING = 1000
COMMANDS = of(60, 1000)
ROUNDS = of(5, 50)


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[tuple[Daemon, list[Caller], float, int]]:
    """A daemon in which 1,000 calls hang, what it weighed before, and its threads."""
    with running(tmp_path / "home", argv=WITH_TOOLS, settings={"drain_s": 0.3}) as daemon:
        session = daemon.session().session
        assert session is not None
        Others(daemon).ask()  # What any of these loads is not what hanging calls cost.
        weight, count = daemon.rss_mb, threads(daemon)
        requests = [[call(daemon.token, session, 1, "hang", {})] for _ in range(HANGING)]
        with callers(daemon.port, requests) as crowd:
            drive(crowd, send_only=True)
            until(lambda: in_flight(daemon) == HANGING, what="1,000 calls in flight")
            yield daemon, crowd, weight, count


def test_a_thousand_hanging_calls_hold_up_nobody(
    hanging: tuple[Daemon, list[Caller], float, int], figures: Figures
) -> None:
    """Issue 5, section 3, and DESIGN 3: everything else answers under a second, no thread is lost, little memory."""
    daemon, crowd, weight, count = hanging
    others = Others(daemon)
    for _ in range(ROUNDS):
        others.ask()
    heavier = daemon.rss_mb - weight
    figures.note(hanging_calls=HANGING, memory_MB=f"{weight:.1f} to {weight + heavier:.1f}")
    figures.note(threads=f"{count} to {threads(daemon)}", slowest_of_all_others_ms=others.worst_ms)

    # A worker or two may have been started for the others.
    assert threads(daemon) <= count + 4
    assert heavier < 25

    began = time.monotonic()
    assert daemon.stop() == 0
    took = time.monotonic() - began
    figures.note(end_with_all_of_them_s=f"{took:.2f}")
    assert took < 3
    drive(crowd)
    assert [len(caller.answers) for caller in crowd] == [1] * HANGING
    assert {body["result"]["isError"] for caller in crowd for _, body in caller.answers} == {True}
    assert unpaired(daemon.audit()) == set()


def test_as_many_commands_as_may_run_hold_up_nobody(tmp_path: Path, figures: Figures) -> None:
    """Issue 5, section 3: the same with real commands, which cost a process each but no thread of ours."""
    settings = {"drain_s": 0.3, "limits": {"jobs": COMMANDS + 10}}
    with running(tmp_path / "home", settings=settings) as daemon:
        session = daemon.session().session
        assert session is not None
        Others(daemon).ask()
        weight = daemon.rss_mb
        requests = [[call(daemon.token, session, 1, "bash", {"command": "exec sleep 300", "wait": 300})]] * COMMANDS
        with callers(daemon.port, requests) as crowd:
            drive(crowd, send_only=True)
            until(lambda: _running(daemon) == COMMANDS, what="all commands run", seconds=60)
            others = Others(daemon)
            for _ in range(ROUNDS):
                others.ask()
            figures.note(commands=COMMANDS, memory_MB=f"{weight:.1f} to {daemon.rss_mb:.1f}")
            figures.note(slowest_of_all_others_ms=others.worst_ms)
            assert daemon.stop() == 0
            drive(crowd)
            assert {body["result"]["isError"] for caller in crowd for _, body in caller.answers} == {True}
        assert unpaired(daemon.audit()) == set()


def _running(daemon: Daemon) -> int:
    import psutil

    return len(psutil.Process(daemon.process.pid).children())
