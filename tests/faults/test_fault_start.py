"""A start of which one system call fails, or is the last one: it serves, or says why not, and the next start is as usual.

Promise P5 for the start: kill -9 at any instruction leaves everything readable, and the next start needs no hand.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from harness import ROOT, Daemon, running
from state import require_clear_refusal, require_readable, require_usual_start, token_of
from tracing import (
    LONG,
    NOT_THERE,
    WATCHED,
    Came,
    Point,
    break_all,
    came,
    can_trace,
    command,
    finished,
    points,
    some,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Tell = Callable[[dict[str, int]], None]

pytestmark = [
    pytest.mark.skipif(not can_trace(), reason=NOT_THERE),
    pytest.mark.timeout(7200 if LONG else 120),
]

SERVE = [sys.executable, "-m", "a2mcp", "serve"]
OTHERS = ("/usr/", "/lib", "/etc/", "/proc/", "/sys/", str(ROOT), *sysconfig.get_paths().values(), sys.base_prefix)
"""What belongs to Python, to the system and to the code, and not to the home."""
CODE_STEP = 20
"""Finding and reading modules is thousands of calls that are all alike; every n would take hours."""


class Start(NamedTuple):
    """What one kind of start does, call by call, from the moment that it is our code that runs."""

    template: Path | None
    """The home that it finds; None: there is none."""
    code: list[Point]
    """Finding and reading modules."""
    home: list[Point]
    """Everything else."""


class Attempt(NamedTuple):
    """What became of one start."""

    greeting: str
    code: int | None
    """None while it runs."""
    stderr: str


@pytest.fixture(scope="module", params=["first", "again"])
def start(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Watch a start in an empty place, and one in a home in which a daemon was killed."""
    folder = tmp_path_factory.mktemp(request.param)
    template = None if request.param == "first" else used_home(folder / "template")
    log = folder / "trace"
    daemon = fresh(folder / "watched", template)
    attempt = try_start(daemon, log, ["-e", f"trace={','.join(WATCHED)}"])
    assert attempt.code is None, attempt.stderr
    assert daemon.stop() == 0
    finished(log)
    main = [point for point in points(log) if point.thread == 0]
    begin = next(index for index, point in enumerate(main) if "a2mcp/cli" in point.subject)
    end = next(index for index, point in enumerate(main) if "a2mcp listening on" in point.rest)
    ours = [point for point in main[begin:end] if point.faults]
    code = [point for point in ours if point.subject.startswith(OTHERS)]
    return Start(template, code, [point for point in ours if point not in code])


def used_home(home: Path) -> Path:
    """Leave a home as a killed daemon does: settings, log, jobs, grants, events, and an endpoint that is not true."""
    with running(home, settings={"port": 0, "approval": {"mode": "always-ask"}}) as daemon:
        client = daemon.session()
        client.call("xfer_status")
        daemon.cli("approve", "nothing", "--always")
        daemon.process.kill()
        daemon.process.wait(10)
    (home / "grants.json").write_text(json.dumps({"grants": [grant()]}))
    (home / "grants.json").chmod(0o600)
    return home


def grant() -> dict[str, str]:
    return {"id": "gabcdef", "tool": "bash", "since": "2026-01-01T00:00:00.000Z"}


def fresh(home: Path, template: Path | None) -> Daemon:
    """A home that is as the template, or that is not there."""
    daemon = Daemon(home)
    daemon.stderr_path = home.with_name("stderr.txt")
    daemon.stderr_path.write_bytes(b"")
    shutil.rmtree(home)
    if template is not None:
        shutil.copytree(template, home, ignore=shutil.ignore_patterns("*.sock"))
        home.chmod(0o700)
    return daemon


def try_start(daemon: Daemon, log: Path, options: Sequence[str]) -> Attempt:
    """Start a daemon under strace and wait until it serves or has ended."""
    log.unlink(missing_ok=True)
    with daemon.stderr_path.open("ab") as stderr:
        daemon.process = subprocess.Popen(
            command(log, options, SERVE),
            cwd=daemon.home.parent, env=daemon.environment, stdout=subprocess.PIPE, stderr=stderr,
        )  # fmt: skip
    assert daemon.process.stdout is not None
    greeting = daemon.process.stdout.readline().decode()
    if greeting:
        daemon.learn()
        return Attempt(greeting, None, daemon.stderr)
    code = daemon.process.wait(20)
    daemon.kill()
    finished(log)
    return Attempt(greeting, code, daemon.stderr)


def break_at(tmp_path: Path, start: Start, point: Point, fault: str) -> str:
    """Start with one fault; fails unless what follows is as promised. What became of it, in a word."""
    daemon = fresh(tmp_path / "home", start.template)
    log = tmp_path / "trace"
    try:
        attempt = try_start(daemon, log, point.inject(fault))
        whether = Came.NOT if fault == "KILL" and attempt.code is None else came(log, point, fault)
        if fault == "KILL":
            assert attempt.code in (None, -9), attempt.stderr
        elif attempt.code is None:
            assert daemon.session().call("xfer_status").result["isError"] is False
            assert daemon.stop() == 0
            assert "Traceback" not in daemon.stderr, daemon.stderr
        else:
            require_clear_refusal(attempt.code, attempt.stderr)
    finally:
        daemon.kill()
    token = token_of(daemon.home)
    require_readable(daemon.home)
    require_usual_start(daemon, token=token)
    if whether is not Came.AS_MEANT:
        return whether.value
    return "served" if attempt.code is None else f"ended with {attempt.code}"


def test_a_start_of_which_a_call_fails_serves_or_says_why(start: Start, tmp_path: Path, tell: Tell) -> None:
    """Rows C02, U04, D10; issue, item 2: EIO, ENOSPC and EMFILE at the n-th call, for every n."""
    cases = [(point, fault) for point in start.home for fault in point.faults]
    assert len(cases) > 50
    tell(break_all(some(cases, 5), partial(break_at, tmp_path, start)))


def test_a_start_that_cannot_read_its_own_code_says_so(start: Start, tmp_path: Path, tell: Tell) -> None:
    """Row D10: a module that cannot be found or read is a sentence, too."""
    cases = [(point, fault) for point in start.code for fault in point.faults]
    assert len(cases) > 500
    # Of a hash whose code cannot be read, Python's own module logs a traceback.
    hashes = [case for case in cases if "_blake2" in case[0].subject and case[0].name == "openat"]
    assert hashes
    tell(break_all([*some(cases[::CODE_STEP], 2), *hashes], partial(break_at, tmp_path, start)))


def test_a_start_that_is_killed_at_a_call_leaves_nothing_to_mend(start: Start, tmp_path: Path, tell: Tell) -> None:
    """Promise P5; rows U02, C02, D03: kill -9 before the n-th call, for every n."""
    cases = [(point, "KILL") for point in start.home]
    tell(break_all(some(cases, 3), partial(break_at, tmp_path, start)))
