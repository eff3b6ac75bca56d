"""A daemon that is killed at one system call of what it is doing: everything can be read, and the next start is as usual.

Promise P5 while it serves; rows U02, C02, C09, D03, Q03. What was acknowledged is there afterwards.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from harness import until
from live import Live
from operations import allow_always, channel_threads, record_calls, rotate_token, share, sleepers, start_job
from state import endpoint_token, require_readable, require_whole_log, token_of
from tracing import LONG, NOT_THERE, Came, Point, break_all, can_trace, some

if TYPE_CHECKING:
    from collections.abc import Callable

    Operation = Callable[[Live], None]
    Tell = Callable[[dict[str, int]], None]

pytestmark = [
    pytest.mark.skipif(not can_trace(), reason=NOT_THERE),
    pytest.mark.timeout(7200 if LONG else 120),
]

MOST = 3
"""Kills of one operation in the short form."""


@pytest.mark.parametrize("operation", [record_calls, rotate_token, start_job, share, allow_always])
def test_a_daemon_that_is_killed_leaves_nothing_to_mend(live: Live, operation: Operation, tell: Tell) -> None:
    """Promise P5: kill -9 before the n-th call, for every n, of a thread that does something for the operation."""
    (live.home / "shared.txt").write_text("shared")
    operation(live)
    live.use_token()
    live.warm = (operation, Live.use_token)
    live.again()
    peers = channel_threads(live)
    watched = min((live.watch(operation) for _ in range(3)), key=len)
    # The store of events has a test of its own: how often it writes depends on how many events come together.
    stores = {point.thread for point in watched if "events.db" in point.subject}
    found = [(point, "KILL") for point in watched if point.thread not in stores]
    assert len(found) > 10
    tell(break_all(some(found, MOST), partial(kill_at, live, operation, peers)))


def kill_at(live: Live, operation: Operation, peers: tuple[int, ...], point: Point, fault: str) -> str:
    """One kill and the start after it; what became of it, in a word."""
    if live.process.poll() is not None:
        live.again()
    live.use_token()
    token = live.token
    whether = live.broken(operation, point, fault, peers=peers)
    if whether is Came.NOT:
        return whether.value
    live.process.wait(10)
    granted, live.granted_ = live.granted_, None
    require_readable(live.home)
    live.warm = ()
    live.again()
    require_no_complaint(live.news())
    assert operation is rotate_token or live.token == token
    assert token_of(live.home) == endpoint_token(live.home) == live.operator.token()
    assert granted is None or granted in live.operator.grants()
    require_whole_log(live.home)
    end_orphans(live)
    # Warm again: the next kill is counted in what is done when nothing is done for the first time.
    operation(live)
    return "killed"


def require_no_complaint(said: str) -> None:
    """Fail if a start said more than that commands are left, which is so."""
    lines = [line for line in said.splitlines() if "left 1 command(s) running" not in line]
    assert lines == []


def end_orphans(live: Live) -> None:
    """End what the killed daemon has left running, by the list that the next one has of it."""
    for job in live.operator.jobs():
        if job.state == "orphan":
            assert live.ask("jobs", action="stop", id=job.id)["isError"] is False
    until(lambda: not sleepers(), what="the end of the command")
