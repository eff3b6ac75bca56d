"""P2 and P3: a daemon that is killed with -9 at random moments under load.

Twenty moments in the short form, two hundred in the long one, all of them on one home.
"""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest
from figures import of
from harness import Daemon
from killed import MARKS, Call, Caller, Records, judge

from a2mcp.audit import query
from a2mcp.audit.verify import opened_log, verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from figures import Figures

    from a2mcp.audit.verify import Report

MOMENTS = of(12, 200)
LONGEST_S = 0.5
CALLERS = 6
MOST = 40
"""Calls of each caller. All records of a turn must fit into one file of the log, which is full after some turns."""
LOG_BYTES = 512 * 1024


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """One that is not started yet."""
    made = Daemon(tmp_path / "home", settings={"audit": {"bytes": LOG_BYTES}})
    (made.home / MARKS).mkdir()
    yield made
    made.kill()


class Turn:
    """One life of a daemon: started, called by many at once, killed; and what is left of it."""

    def __init__(self, daemon: Daemon, number: int, moment: float) -> None:
        self._prefix = f"k{number}-"
        self._daemon = daemon
        began = time.monotonic()
        daemon.start()
        daemon.alive()
        self.start_s = time.monotonic() - began
        self._before = report_of(daemon)
        callers = [Caller(daemon, number, each, MOST) for each in range(CALLERS)]
        kill_at(daemon, callers, moment)
        self.calls = [call for caller in callers for call in caller.calls]
        self.wrong = [wrong for caller in callers for wrong in caller.wrong]
        self.report = report_of(daemon)
        self.records = Records(daemon.home)
        self.undone = self.records.undone(self._prefix)

    def faults(self) -> list[str]:
        """Everything that is not as it must be."""
        report, marks = self.report, self._daemon.home / MARKS
        names = {call.name for call in self.calls}
        unfinished = {call.record.id for call in query.unfinished(self._daemon.home / "a2mcp.log")}
        found = [*self.wrong, *judge(self.calls, self.records, {path.name for path in marks.iterdir()})]
        for what, holds in {
            "the log is whole": (report.fault, report.unchained, report.lost) == (None, 0, 0),
            "all records of the turn are in the window": report.first <= self._before.last + 1,
            "no record was lost that was there": report.last >= self._before.last,
            "only what was called has a start": {n for n in self.records.starts if n.startswith(self._prefix)} <= names,
            "what has no end is told as unfinished": self.undone <= unfinished,
        }.items():
            found += [] if holds else [f"not so: {what}; {report}"]
        return found


def report_of(daemon: Daemon) -> Report:
    with opened_log(daemon.home / "a2mcp.log") as files:
        return verify(files)[0]


def kill_at(daemon: Daemon, callers: list[Caller], moment: float) -> None:
    """Let the callers call, and end the daemon with -9 while they do; they all come to an end."""
    killer = threading.Timer(moment, daemon.process.send_signal, (signal.SIGKILL,))
    for caller in callers:
        caller.start()
    killer.start()
    killer.join()
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    for caller in callers:
        caller.join()
    daemon.kill()


@pytest.mark.slow
@pytest.mark.timeout(of(300, 1800))
def test_whatever_was_answered_is_recorded_and_the_next_start_needs_no_hand(daemon: Daemon, figures: Figures) -> None:
    """Promises P2 and P3; rows D03 and U02: after each kill, for every call, and for the log as a whole."""
    chance = random.Random()
    turns = []
    for number in range(MOMENTS):
        moment = chance.uniform(0, LONGEST_S)
        turns.append(Turn(daemon, number, moment))
        assert turns[-1].faults() == [], f"turn {number}, killed {moment:.6f} s after the first call"
        for path in (daemon.home / MARKS).iterdir():
            path.unlink()

    daemon.start()
    daemon.alive()
    told = json.loads(daemon.cli("audit", "--verify", "--json").stdout)
    assert (told["ok"], told["daemon"]) == (True, "agrees")
    assert "Traceback" not in daemon.stderr
    assert "internal error" not in daemon.stderr
    answered, undone = sum(call.answered for turn in turns for call in turn.calls), sum(len(t.undone) for t in turns)
    figures.note(
        kills=MOMENTS,
        calls_answered_and_found_twice_in_the_log=answered,
        calls_cut_off_that_have_a_start_only=undone,
        records=told["report"]["last"],
        slowest_start_s=f"{max(turn.start_s for turn in turns):.2f}",
    )
    assert answered > MOMENTS, "there was load"
    assert undone > 0, "and calls were cut off by it"


def log_of(folder: Path, starts: str, ends: str) -> Records:
    """What the log says of the call ``n``: a letter for each id."""
    records = Records(folder)
    records.starts, records.ends = ({"n": list(ids)} if ids else {} for ids in (starts, ends))
    return records


@pytest.mark.parametrize("log", [("", ""), ("a", "")])
def test_an_answer_without_both_records_is_found_out(tmp_path: Path, log: tuple[str, str]) -> None:
    """Promise P2; ours: a check that could not fail would show nothing."""
    assert judge([Call("n", answered=True)], log_of(tmp_path, *log), {"n"})[0].startswith("P2")


@pytest.mark.parametrize(
    ("log", "marks"),
    [(("", ""), "n"), (("", "a"), "n"), (("a", "a"), ""), (("aa", "a"), "n"), (("a", "aa"), "n"), (("a", "b"), "n")],
)
def test_a_log_that_says_something_else_is_found_out(tmp_path: Path, log: tuple[str, str], marks: str) -> None:
    """Promise P3; ours, as above."""
    assert judge([Call("n")], log_of(tmp_path, *log), set(marks))


@pytest.mark.parametrize(("log", "marks"), [(("", ""), ""), (("a", ""), ""), (("a", ""), "n"), (("a", "a"), "n")])
def test_what_may_be_after_a_kill_is_no_fault(tmp_path: Path, log: tuple[str, str], marks: str) -> None:
    """Promise P3: not dispatched; dispatched, before or after its effect; completed, and the answer was lost."""
    assert judge([Call("n")], log_of(tmp_path, *log), set(marks)) == []
