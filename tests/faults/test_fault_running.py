"""A daemon that serves, of which one system call fails: it answers in words, goes on, and loses nothing.

Rows U04, C02, B11 and F11: the log and its rotation, the token, a job, a share, a grant.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from harness import until
from operations import channel_threads, record_calls, rotate_token, share, sleepers, start_job
from state import endpoint_token, records, require_whole_log, token_of
from tracing import LONG, NOT_THERE, Came, Point, break_all, can_trace, some

if TYPE_CHECKING:
    from collections.abc import Callable

    from live import Live

    Tell = Callable[[dict[str, int]], None]

pytestmark = [
    pytest.mark.skipif(not can_trace(), reason=NOT_THERE),
    pytest.mark.timeout(7200 if LONG else 120),
]

MOST = 16
"""Faults of one operation in the short form."""
WRITTEN_BY_OTHERS = {"a2mcp.log", "events.db", "events.db-wal"}


def require_fine(live: Live) -> None:
    """Fail unless it goes on as if nothing had been, and took nothing that happened for a fault of its own."""
    assert live.ask("echo", text="on")["content"][0]["text"] == "on"
    said = live.news()
    assert "Traceback" not in said, said
    assert "internal error" not in said, said


# --- what must hold afterwards ------------------------------------------------------------------------------------


def log_holds(live: Live) -> None:
    """Every record is in the log, was rotated away, or is counted as a failure."""

    def missing() -> int:
        counts = live.counts()
        # The end of the call that tells the counts is not among them, and may itself have made the log rotate.
        return counts["written"] + 1 - counts["rotated_away"] - len(records(live.home))

    assert 0 in (missing(), missing())
    require_whole_log(live.home)


def token_is_one(live: Live) -> None:
    """The token in force is the one in the settings and in the endpoint, and the log can be told of it."""
    token = live.operator.token()
    assert token_of(live.home) == token
    until(lambda: endpoint_token(live.home) == token, what="the endpoint with the token in force")
    live.learn()
    live.client_.token = live.token
    assert live.client_.ask("ping").result == {}


def no_command_runs(live: Live) -> None:
    """No process of a job is left, and the jobs can be listed."""
    until(lambda: not sleepers(), what="the end of the command")
    assert live.ask("jobs", action="list")["isError"] is False


def nothing_is_shared(live: Live) -> None:
    """Nothing is left of the share, and another works."""
    assert live.client_.send("GET", "/xfer/shared.txt").status == 404
    share(live)


# --- errors -------------------------------------------------------------------------------------------------------


class Attack(NamedTuple):
    """What is done while it fails, and what must hold afterwards."""

    operation: Callable[[Live], None]
    holds: Callable[[Live], None]
    only: tuple[Path, ...] = ()
    """The files whose calls fail; none: all."""
    peers: tuple[int, ...] = ()
    """Threads that take turns in doing it."""


def every_fault(live: Live, attack: Attack) -> list[tuple[Point, str]]:
    """What can fail in an operation, and how; the log and the events have tests of their own."""
    (live.home / "shared.txt").write_text("shared")
    attack.operation(live)
    live.warm = (attack.operation,)
    # What the daemon does beside it, such as looking through the folder of jobs, makes a run longer, never shorter.
    runs = [live.watch(attack.operation, only=attack.only) for _ in range(3)]
    found = max(runs, key=len) if attack.only else min(runs, key=len)
    others = (
        set() if attack.only else {point.thread for point in found if Path(point.subject).name in WRITTEN_BY_OTHERS}
    )
    return [(point, fault) for point in found for fault in point.faults if point.thread not in others]


def break_live(live: Live, attack: Attack, point: Point, fault: str) -> str:
    """One fault while it serves; what became of it, in a word."""
    whether = live.broken(attack.operation, point, fault, only=attack.only, peers=attack.peers)
    if whether is Came.ELSEWHERE:
        live.again()
        live.news()
        return whether.value
    attack.holds(live)
    require_fine(live)
    return "went on" if whether is Came.AS_MEANT else whether.value


def test_a_log_whose_writes_fail_goes_on_and_counts_what_it_lost(live: Live, tell: Tell) -> None:
    """Rows U04, U12; promise P2: each record is in the log or counted, across rotations, and the next ones are there."""
    attack = Attack(record_calls, log_holds, only=(live.home / "a2mcp.log",))
    cases = every_fault(live, attack)
    assert {"openat", "rename", "write"} <= {point.name for point, _ in cases}
    tell(break_all(some(cases, MOST), partial(break_live, live, attack)))
    assert live.counts()["failures"] > 0


def test_a_token_that_cannot_be_kept_does_not_replace_the_one_that_is(live: Live, tell: Tell) -> None:
    """Row C02: EIO, ENOSPC and EMFILE in each call of a rotation; the old token or the new one, everywhere."""
    attack = Attack(rotate_token, token_is_one, peers=channel_threads(live))
    cases = [case for case in every_fault(live, attack) if case[0].thread in attack.peers]
    tell(break_all(some(cases, MOST), partial(break_live, live, attack)))


def test_a_command_that_cannot_become_a_job_is_told_and_leaves_no_process(live: Live, tell: Tell) -> None:
    """Rows B11, B09; promise P6: each call of a start of a job."""
    attack = Attack(start_job, no_command_runs)
    cases = every_fault(live, attack)
    assert {"vfork", "pidfd_open", "mkdir", "rename", "epoll_ctl"} <= {point.name for point, _ in cases}
    tell(break_all(some(cases, MOST), partial(break_live, live, attack)))


def test_a_share_that_cannot_be_opened_is_told(live: Live, tell: Tell) -> None:
    """Issue, item 2: share start."""
    attack = Attack(share, nothing_is_shared)
    cases = every_fault(live, attack)
    assert "openat2" in {point.name for point, _ in cases}
    tell(break_all(some(cases, MOST), partial(break_live, live, attack)))
