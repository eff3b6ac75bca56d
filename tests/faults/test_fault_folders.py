"""Folders that may not be written to, by somebody whom the system stops: a start says so, and a daemon goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest
from harness import Daemon
from inflight import WITH_TOOLS
from live import Live
from state import require_clear_refusal, require_usual_start, require_whole_log, token_of

from a2mcp.errors import A2mcpError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVE = [sys.executable, "-m", "a2mcp", "serve"]


@cache
def as_somebody() -> tuple[str, ...] | None:
    """The beginning of a command line that runs as a user whom the modes of files bind; None where there is none.

    It is root without the two rights that let root ignore them, and not another user: whoever that is may not be able
    to read Python.
    """
    if os.geteuid():
        return ()
    if shutil.which("setpriv") is None:
        return None
    rights = "-dac_override,-dac_read_search"
    start = ("setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}", "--")
    bound = 'file=$(mktemp) && chmod 0 "$file" && ! cat "$file"; code=$?; rm -f "$file"; exit $code'
    done = subprocess.run([*start, "sh", "-c", bound], check=False, capture_output=True)
    return start if done.returncode == 0 else None


pytestmark = pytest.mark.skipif(as_somebody() is None, reason="root, and no setpriv here to be less")


def start_in(home: Path) -> tuple[int, str]:
    """Try to start a daemon as somebody; its exit code and what it said."""
    daemon = Daemon.__new__(Daemon)
    daemon.home = home
    done = subprocess.run(
        [*(as_somebody() or ()), *SERVE], cwd=home.parent, env=daemon.environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A home whose mode a test takes away; given back at the end, so that it can be removed."""
    home = tmp_path / "home"
    yield home
    if home.exists():
        home.chmod(0o700)


@pytest.mark.parametrize("mode", [0o500, 0o400, 0o000])
@pytest.mark.parametrize("used", [False, True])
def test_a_home_that_may_not_be_written_to_ends_the_start_with_a_sentence(closed: Path, mode: int, used: bool) -> None:
    """Rows C05, F11: read-only home, empty and with all that a daemon leaves there; the next start needs no hand."""
    daemon = Daemon(closed, settings={"port": 0})
    if used:
        require_usual_start(daemon)
    token = token_of(closed)
    closed.chmod(mode)
    require_clear_refusal(*start_in(closed))
    closed.chmod(0o700)
    require_usual_start(daemon, token=token)


def test_a_home_that_cannot_be_made_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    """Row C05: its folder may not be written to."""
    above = tmp_path / "above"
    above.mkdir(mode=0o500)
    code, said = start_in(above / "home")
    require_clear_refusal(code, said)
    assert str(above / "home") in said


@pytest.mark.parametrize("name", ["a2mcp.json", "lock", "grants.json", "a2mcp.log", "events.db", "endpoint.json"])
def test_a_file_that_may_not_be_read_or_written_is_named_or_done_without(closed: Path, name: str) -> None:
    """Rows U05, C04, Q03: what the start cannot do without is named; the others are told and gone on without."""
    daemon = Daemon(closed, settings={"port": 0})
    require_usual_start(daemon)
    for made in ("grants.json", name):
        (closed / made).touch(mode=0o600)
    (closed / "grants.json").write_text('{"grants": []}')
    (closed / name).chmod(0)
    guarded = Live(closed, argv=[*(as_somebody() or ()), *WITH_TOOLS])
    if name in ("a2mcp.json", "lock"):
        code, said = start_in(closed)
        require_clear_refusal(code, said)
        assert str(closed / name) in said
    else:
        try:
            guarded.start()
            assert guarded.session().call("echo", text="works").text == "works"
            assert guarded.stop() == 0
            assert "Traceback" not in guarded.stderr, guarded.stderr
        finally:
            guarded.kill()
    if (closed / name).exists():
        (closed / name).chmod(0o600)
    require_usual_start(daemon)


def test_a_home_that_becomes_read_only_stops_nothing(closed: Path) -> None:
    """Rows C02, F11: the token stays, commands run, the log goes on in its file; and all is well once it is writable."""
    settings = {"port": 0, "audit": {"bytes": 64 * 1024}}
    live = Live(closed, argv=[*(as_somebody() or ()), *WITH_TOOLS], settings=settings).begin()
    try:
        live.ask("echo", text="before")
        closed.chmod(0o500)
        for number in range(200):
            assert live.ask("echo", text=f"read only {number}", padding="x" * 100)["isError"] is False
        assert "audit log not rotated" in live.stderr
        with pytest.raises(A2mcpError, match="cannot be written: Permission denied") as refused:
            live.operator.rotate()
        assert refused.value.hint
        job = live.ask("bash", command="seq 100000", wait=5)
        assert job["structuredContent"]["exitCode"] == 0
        closed.chmod(0o700)
        for number in range(10):
            assert live.ask("echo", text=f"writable {number}", padding="x" * 100)["isError"] is False
        assert live.counts()["failures"] == 0
        assert (closed / "a2mcp.log.1").exists(), "rotated as soon as it could be"
        live.operator.rotate()
        live.use_token()
        assert live.client_.ask("ping").result == {}
        assert "Traceback" not in live.stderr, live.stderr
        assert live.stop() == 0
    finally:
        live.kill()
    require_whole_log(closed)
