"""Progress of the tools that take long: what is told, how often, and that nothing is done where nobody asked."""

from __future__ import annotations

import pytest
from command_calls import Shell

from a2mcp.host import progress
from a2mcp.host.capture import Budget, Capture
from a2mcp.host.timers import Timers
from a2mcp.tools import bash, grep, jobs
from a2mcp.tools.context import SILENT, Context, Limits


class Ear:
    """A caller that wants to know."""

    wants_progress = True

    def __init__(self):
        self.told = []

    def progress(self, done, total=None, message=None):
        self.told.append((done, total, message))

    def log(self, level, data):
        raise AssertionError


class Ticking:
    """A clock on which every look costs as much."""

    def __init__(self, step):
        self._now, self._step = 0.0, step

    def monotonic(self):
        self._now += self._step
        return self._now


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "PROGRESS_S", 0.05)
    made = Shell(tmp_path / "home")
    yield made
    made.close()


def test_a_command_tells_bytes_and_last_line_until_it_is_answered(shell):
    """Issue §4: bytes and last line."""
    ear = Ear()
    call = shell.begin(bash.TOOL, tell=ear, command="echo one; echo two; sleep 30", wait=2)

    shell.result_of(call)
    told = len(ear.told)
    shell.until(lambda: shell.jobs("list").structured["jobs"])

    assert set(ear.told) <= {(0, None, ""), (4, None, "one"), (8, None, "two")}
    assert told == len(ear.told) > 1


def test_waiting_for_a_job_tells_what_it_says(shell):
    """Issue §4: `jobs wait`."""
    job = shell.bash("echo from the job; sleep 30", wait=0).structured["jobId"]
    ear = Ear()

    shell.result_of(shell.begin(jobs.TOOL, tell=ear, action="wait", id=job, timeout=2))

    assert ear.told[-1] == (13, None, "from the job")


def test_nothing_is_set_up_where_nobody_asked(shell, monkeypatch):
    """Ours: no cost without a token."""
    after = []
    monkeypatch.setattr(Timers, "after", lambda *args: after.append(args))

    call = shell.begin(bash.TOOL, tell=SILENT, command="true")
    shell.result_of(call)

    assert not [step for _, seconds, step in after if seconds == progress.PROGRESS_S]


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (r"printf 'a\nb'", "b"), (r"printf 'a\n\n  \n'", "a"), (r"printf ' 10%%\r 20%%'", "20%"), ("true", ""),
        (r"printf 'x\n' >&2", "x"), (r"printf '\033[31mred\033[0m\n'", "red"), (r"printf 'z%.0s' {1..5000}", "z" * 200),
    ],
)  # fmt: skip
def test_the_last_line_is_as_a_terminal_shows_it_and_short(shell, output, line):
    """Ours: a progress bar is one line that is written over and over."""
    shell.begin(bash.TOOL, command=f"{output}; exec sleep 30")
    (run,) = shell.runs._live
    shell.until(lambda: run.last_line() == line)


def test_the_end_of_a_stream_is_known_whatever_was_kept():
    """Ours: also when there was no room to keep it."""
    capture = Capture(-1, Budget(4))
    capture._store(b"abcdef")
    assert capture.last(3) == b"def"
    capture.keep_in(None)
    capture._store(b"ghi")
    assert capture.last(2) == b"hi"


def test_a_search_tells_how_many_files_have_matches(tmp_path):
    """Issue §4: `grep`; rg says nothing of files without a match before its end."""
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text("needle\n")
    told = {}
    for step in (0.4, 0.01):
        ear = Ear()
        context = Context(
            ticket=None, cwd=tmp_path, home=tmp_path, limits=Limits(), jobs=None, clock=Ticking(step), tell=ear
        )
        assert len(grep.run(grep.GrepParams(pattern="needle"), context).structured["matches"]) == 20
        told[step] = ear.told

    files = [done for done, _, _ in told[0.4]]
    assert 4 < len(files) < 12
    assert files == sorted(set(files))
    assert told[0.4][0][2] == f"{files[0]} files with matches so far"
    assert told[0.01] == []
