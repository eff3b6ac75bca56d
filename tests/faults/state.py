"""What must hold of a home whatever was done to its daemon: all of it can be read, and nothing needs a hand."""

from __future__ import annotations

import json
import sqlite3
import stat
from contextlib import closing
from typing import TYPE_CHECKING, Any

from harness import Daemon

from a2mcp.audit.verify import opened_log, verify
from a2mcp.config import endpoint as endpoints

if TYPE_CHECKING:
    from pathlib import Path


def require_readable(home: Path, *, torn: int = 1) -> None:
    """Fail unless everything in the home of a daemon that is gone can be read.

    Args:
        home: the folder.
        torn: how many lines of the log may be cut: one for each time that a daemon was killed.
    """
    for name in ("a2mcp.json", "endpoint.json", "grants.json", "installs.json", "pins.json"):
        _require_json(home / name)
    for meta in home.glob("jobs/*/meta.json"):
        _require_json(meta)
    lines = [line for name in ("a2mcp.log.1", "a2mcp.log") for line in _lines(home / name)]
    assert sum(not _is_record(line) for line in lines) <= torn, "more is torn than was killed"
    if (home / "events.db").exists():
        _require_sound_database(home / "events.db")


def require_usual_start(daemon: Daemon, *, token: str | None = None) -> None:
    """Fail unless a plain start of the daemon works as if nothing had happened, and cleans up; it is stopped again."""
    said = len(daemon.stderr) if daemon.stderr_path.exists() else 0
    daemon.home.mkdir(mode=0o700, exist_ok=True)
    daemon.start()
    try:
        assert daemon.session().call("bash", command="echo works").text.startswith("works")
        assert token in (None, daemon.token), "another token than the one that was given out"
        assert daemon.stop() == 0
    finally:
        daemon.kill()
    told = daemon.stderr[said:]
    assert "Traceback" not in told, told
    assert "warning" not in told, told
    assert [path.name for path in daemon.home.rglob(".a2mcp-*")] == []
    assert not (daemon.home / "endpoint.json").exists()
    require_readable(daemon.home, torn=10_000)


def require_clear_refusal(code: int, stderr: str) -> None:
    """Fail unless a program that ended by itself said why in a sentence, what to do, and with a code of the table."""
    assert code in (1, 2, 4), (code, stderr)
    assert "Traceback" not in stderr, stderr
    assert "Exception ignored" not in stderr, stderr
    lines = stderr.splitlines()
    first = next((index for index, line in enumerate(lines) if line.startswith("a2mcp: ")), None)
    assert first is not None, stderr
    assert lines[first].endswith("."), stderr
    assert lines[first + 1].startswith("       "), f"no hint: {stderr}"


def require_whole_log(home: Path) -> None:
    """Fail unless each record follows the one before it, but for what a kill left of a line."""
    with opened_log(home / "a2mcp.log") as files:
        report, _ = verify(files)
    assert report.fault is None, report.fault
    assert report.records > 0


def endpoint_token(home: Path) -> str | None:
    """The token that programs of this user are told."""
    found = endpoints.read(home / "endpoint.json")
    return None if found is None else found.token


def token_of(home: Path) -> str | None:
    """The token that the settings hold, where they hold one."""
    path = home / "a2mcp.json"
    token: str | None = json.loads(path.read_text()).get("token") if path.exists() else None
    return token


def records(home: Path) -> list[dict[str, Any]]:
    """The records of both generations that are whole, oldest first."""
    lines = [line for name in ("a2mcp.log.1", "a2mcp.log") for line in _lines(home / name)]
    return [json.loads(line) for line in lines if _is_record(line)]


def _require_json(path: Path) -> None:
    if path.exists():
        json.loads(path.read_bytes())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _require_sound_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
