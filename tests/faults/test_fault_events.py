"""The store of events on a disk that fails at one call: what it said it keeps it keeps, and it goes on by itself."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest
from harness import ROOT
from tracing import LONG, NOT_THERE, WATCHED, Came, Point, break_all, came, can_trace, command, finished, points, some

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Tell = Callable[[dict[str, int]], None]

pytestmark = [
    pytest.mark.skipif(not can_trace(), reason=NOT_THERE),
    pytest.mark.timeout(7200 if LONG else 120),
]

KEEPER = """
import json, logging, sys
from pathlib import Path
from a2mcp.observe import store
from a2mcp.observe.event import Event

class Clock:
    seconds = 0.0
    def monotonic(self):
        self.seconds += store.PAUSE_S + 1
        return self.seconds

logging.basicConfig(stream=sys.stderr, format="%(message)s")
def keep(number, kept):
    events = [Event(sequence=number, ts="t", kind="call.done", args=b'"' + b"x" * 3000 + b'"')]
    if keeper.append(events):
        kept.append(number)
kept = []
for turn in range(2):
    keeper = store.Store(Path(sys.argv[1]), clock=Clock(), keep=40)
    for number in range(keeper.newest() + 1, keeper.newest() + 41):
        keep(number, kept)
    keeper.close()
print(json.dumps(kept), flush=True)
"""
"""Keeps eighty events in two runs, of which the last forty are to stay."""


def keeper(path: Path, log: Path, options: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run it under strace."""
    done = subprocess.run(
        command(log, options, [sys.executable, "-c", KEEPER, str(path)]),
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    finished(log)
    return done


def break_at(tmp_path: Path, point: Point, fault: str) -> str:
    """One fault; what became of it."""
    path, log = tmp_path / "events.db", tmp_path / "trace"
    for left in tmp_path.glob("events.db*"):
        left.unlink()
    done = keeper(path, log, point.inject(fault))
    if fault == "KILL":
        assert done.returncode in (0, -9), done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        kept = json.loads(done.stdout)
        assert len(kept) > 40, (kept, done.stderr)
        require_kept(path, [number for number in kept if number > kept[-1] - 40])
    # Whatever was, the next one goes on.
    again = keeper(path, log.with_suffix(".again"), ["-e", "trace=none"])
    assert again.returncode == 0, again.stderr
    assert again.stderr == ""
    assert len(json.loads(again.stdout)) == 80
    return "kept" if (whether := came(log, point, fault)) is Came.AS_MEANT else whether.value


def require_kept(path: Path, numbers: Sequence[int]) -> None:
    """Fail unless the file is sound and has these."""
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = {row[0] for row in database.execute("SELECT last FROM groups")}
    assert set(numbers) <= found


@pytest.mark.parametrize("kill", [False, True], ids=["fails", "is the last"])
def test_a_store_of_which_a_call_fails_keeps_what_it_said_and_goes_on(tmp_path: Path, tell: Tell, kill: bool) -> None:
    """Rows Q03, Q04, Q05: EIO and ENOSPC at the n-th call on its files, and kill -9 there."""
    path = tmp_path / "events.db"
    watched = keeper(path, tmp_path / "trace", ["-e", f"trace={','.join(WATCHED)}"])
    assert len(json.loads(watched.stdout)) == 80, watched.stderr
    found = [point for point in points(tmp_path / "trace") if point.subject.startswith(str(path))]
    assert {"pwrite64", "fdatasync", "openat"} <= {point.name for point in found}
    cases = [(point, fault) for point in found for fault in (("KILL",) if kill else point.faults)]
    # SQLite says of a page of what is to be deleted that could not be read that the file is malformed.
    deleting = [case for case in cases if case[0].name == "pread64" and case[0].subject == str(path)][-20:-18]
    tell(break_all([*some(cases, 6), *deleting], partial(break_at, tmp_path)))
