"""A daemon with ``audit.sync`` and a disk that fails to take its log, or takes its time.

Rows U04 and C02; promises P2 and P4: what was acknowledged is there, and who waits for the disk holds up nobody else.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from inflight import WITH_TOOLS, Later
from live import Live
from operations import PADDING, SMALL_LOG, record_calls
from state import records, require_readable, require_whole_log
from tracing import LONG, NOT_THERE, Came, Point, attached, break_all, can_trace, some, threads_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Tell = Callable[[dict[str, int]], None]

pytestmark = [
    pytest.mark.skipif(not can_trace(), reason=NOT_THERE),
    pytest.mark.timeout(7200 if LONG else 120),
]

MOST = 4
"""Faults in the short form."""
SLOW_S = 0.5
"""What the disk takes for each group of records."""


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[Live]:
    """A daemon that waits for the disk with each group of records."""
    settings = {"port": 0, "audit": {"bytes": SMALL_LOG, "sync": True}}
    daemon = Live(tmp_path / "home", argv=WITH_TOOLS, settings=settings).begin()
    try:
        yield daemon
    finally:
        daemon.kill()


def waits_for_the_disk(synced: Live) -> list[Point]:
    """Where a rotation and the records around it wait for the disk."""
    record_calls(synced)
    synced.warm = (record_calls,)
    found = max((synced.watch(record_calls) for _ in range(2)), key=len)
    thread = next(point.thread for point in found if point.subject.endswith("a2mcp.log"))
    return [point for point in found if point.thread == thread and point.name in ("fdatasync", "fsync")]


def test_records_that_the_disk_did_not_confirm_are_counted(synced: Live, tell: Tell) -> None:
    """Row U04: EIO and ENOSPC of each wait for the disk; the call is answered, the record in doubt is told of."""
    cases = [(point, fault) for point in waits_for_the_disk(synced) for fault in point.faults]
    assert {point.name for point, _ in cases} == {"fdatasync", "fsync"}

    def break_at(point: Point, fault: str) -> str:
        failures = synced.counts()["failures"]
        whether = synced.broken(record_calls, point, fault)
        assert whether is Came.NOT or synced.counts()["failures"] > failures
        # The end of the call that tells the counts may itself have made the log rotate.
        assert all_are_there(synced) or all_are_there(synced)
        require_whole_log(synced.home)
        return "counted" if whether is Came.AS_MEANT else whether.value

    tell(break_all(some(cases, MOST), break_at))


def all_are_there(synced: Live) -> bool:
    """Whether no record is missing of those that were taken for written and not rotated away."""
    counts = synced.counts()
    return len(records(synced.home)) >= counts["written"] - counts["rotated_away"]


def test_what_was_answered_is_there_when_the_daemon_is_killed_while_it_waits(synced: Live, tell: Tell) -> None:
    """Promise P2: kill -9 before each wait for the disk; whoever had an answer is in the log twice."""
    cases = [(point, "KILL") for point in waits_for_the_disk(synced)]
    tell(break_all(some(cases, MOST), partial(kill_at, synced)))


def kill_at(synced: Live, point: Point, fault: str) -> str:
    if synced.process.poll() is not None:
        synced.again()
    answered: list[str] = []

    def calls(live: Live) -> None:
        for number in range(14):
            live.ask("echo", text=f"marked {number}", **PADDING)
            answered.append(f"marked {number}")

    whether = synced.broken(calls, point, fault)
    if whether is Came.NOT:
        return whether.value
    synced.process.wait(10)
    require_readable(synced.home)
    found = records(synced.home)
    done = {record["id"] for record in found if record["phase"] == "done"}
    whole = [record["args"]["text"] for record in found if record["phase"] == "start" and record["id"] in done]
    assert set(answered[-3:]) <= set(whole)
    synced.again()
    require_whole_log(synced.home)
    return "killed"


def test_a_disk_that_takes_its_time_holds_up_only_who_waits_for_it(synced: Live) -> None:
    """Promise P4: a call waits for the disk twice; meanwhile a ping is answered at once."""
    others = synced.client()
    others.initialize()
    slow = ["-e", "trace=fdatasync", "-e", f"inject=fdatasync:delay_enter={int(SLOW_S * 1e6)}"]
    with attached(synced.home.with_name("slow"), threads_of(synced.process.pid), slow):
        began = time.monotonic()
        call = Later(lambda: synced.ask("echo", text="slow"))
        longest = 0.0
        while not call.over:
            asked = time.monotonic()
            assert others.ask("ping").result == {}
            longest = max(longest, time.monotonic() - asked)
        took = time.monotonic() - began
    assert call.result()["content"][0]["text"] == "slow"
    assert took >= 2 * SLOW_S
    assert longest < SLOW_S
