"""Files of the home that are broken, cut or something else: what the start cannot trust it names, the rest it survives."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from harness import Daemon, running, until
from state import require_clear_refusal, require_usual_start, token_of

from a2mcp.config import endpoint, instance, load
from a2mcp.config.paths import home_from_environment
from a2mcp.errors import A2mcpError
from a2mcp.host.joblog import JobLog
from a2mcp.obtain import installs, pins
from a2mcp.policy.grants import Grants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DEEP = b'{"x":' + b"[" * 100_000
ODD = {
    "empty": b"",
    "a NUL": b"\0" * 64,
    "not text": bytes(range(128, 256)),
    "half a character": b'{"token": "\xc3',
    "another form": b"[]",
    "null": b"null",
    "a number": b"1e999",
    "deep": DEEP,
    "deep in a field": b'{"grants": [{"id": ' + b'{"a":' * 50_000,
    "deep in a list": b'[{"name": ' + b"[" * 50_000,
    "long": b'{"grants": [' + b" " * (2 << 20),
}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with all that a daemon leaves."""
    home = tmp_path_factory.mktemp("used") / "home"
    with running(home, settings={"port": 0}) as daemon:
        client = daemon.session()
        client.call("bash", command="echo kept; sleep 0.2", wait=0)
        client.call("bash", command="echo more")
        until((home / "events.db-wal").exists, what="the first events are kept")
        daemon.process.kill()
        daemon.process.wait(10)
    (home / "stderr.txt").unlink()
    return home


@pytest.fixture
def daemon(used: Path, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that is to start in a copy of it."""
    home = tmp_path / "home"
    shutil.copytree(used, home, ignore=shutil.ignore_patterns("*.sock"))
    home.chmod(0o700)
    started = Daemon(home)
    started.stderr_path = tmp_path / "stderr.txt"
    yield started
    if hasattr(started, "process"):
        started.kill()


# --- a start ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", DEEP, bytes(range(128, 256))], ids=["empty", "deep", "not text"])
@pytest.mark.parametrize("name", ["endpoint.json", "lock", "grants.json", "a2mcp.log", "a2mcp.log.1", "events.db"])
def test_a_start_survives_state_that_is_none(daemon: Daemon, name: str, content: bytes) -> None:
    """Issue, item 2: a broken lock, grants file, log and store of events; nothing is mended by hand."""
    token = token_of(daemon.home)
    (daemon.home / name).write_bytes(content)
    (daemon.home / name).chmod(0o600)
    daemon.start()
    assert daemon.token == token
    assert daemon.session().call("bash", command="echo works").text.startswith("works")
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.stderr, daemon.stderr
    if name != "lock":
        lost = daemon.home / f"{name}.unreadable"
        assert not lost.exists() or lost.read_bytes() == content, "set aside as it was"


def test_a_settings_file_that_is_cut_anywhere_is_named_and_left_alone(daemon: Daemon) -> None:
    """Issue, item 2: a partial settings file. It may hold the only copy of a token, so nothing is guessed."""
    path = daemon.home / "a2mcp.json"
    whole = path.read_bytes()
    home = home_from_environment({"A2MCP_HOME": str(daemon.home)})
    for cut in range(len(whole.rstrip()) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(A2mcpError) as refused:
            load.load(home.config)
        assert refused.value.hint
        assert refused.value.exit_code == 2
        assert path.read_bytes() == whole[:cut]
    done = subprocess.run(
        [sys.executable, "-m", "a2mcp", "serve"], env=daemon.environment, capture_output=True, text=True, check=False
    )
    require_clear_refusal(done.returncode, done.stderr)
    assert str(path) in done.stderr
    path.write_bytes(whole)
    require_usual_start(daemon, token=json.loads(whole)["token"])


def test_the_folder_of_jobs_is_read_whatever_became_of_it(daemon: Daemon) -> None:
    """Issue, item 2: the jobs folder after a kill: a record that is cut, gone, a folder or a pipe, and odd neighbours."""
    jobs = daemon.home / "jobs"
    (first, *_) = (path for path in jobs.iterdir() if path.is_dir())
    meta = (first / "meta.json").read_bytes()
    for number, broken in enumerate((b"", meta[:40], DEEP, b"{}", meta.replace(b'"state":"', b'"state":"x'))):
        shutil.copytree(first, jobs / f"jaaaaaaa{'abcde'[number]}")
        (jobs / f"jaaaaaaa{'abcde'[number]}" / "meta.json").write_bytes(broken)
    (jobs / "jbbbbbbbb").mkdir()
    (jobs / "jcccccccc").mkdir()
    os.mkfifo(jobs / "jcccccccc" / "meta.json")
    (jobs / "jdddddddd").mkdir()
    (jobs / "jdddddddd" / "meta.json").mkdir()
    (jobs / "jeeeeeeee").write_bytes(b"a file")
    (jobs / "somebody else's").mkdir()
    daemon.start()
    client = daemon.session()
    assert first.name in client.call("jobs", action="list").text
    assert client.call("jobs", action="read", id="jcccccccc").result["isError"] is True
    assert client.call("bash", command="echo a job", wait=0).result["isError"] is False
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.stderr, daemon.stderr
    assert (jobs / "somebody else's").exists()


# --- each reader --------------------------------------------------------------------------------------------------


def read_grants(path: Path) -> object:
    from a2mcp.clock import SystemClock

    return Grants(path, SystemClock()).list()


def read_jobs(path: Path) -> object:
    job = path.parent / "jobs" / "jaaaaaaaa"
    job.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, job / "meta.json")
    return JobLog(job.parent, keep=9, keep_bytes=1 << 20).all()


READERS: dict[str, Callable[[Path], object]] = {
    "settings": load.load,
    "endpoint": endpoint.read,
    "grants": read_grants,
    "installs": installs.read,
    "pins": pins.pinned,
    "jobs": read_jobs,
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_no_reader_of_state_breaks(tmp_path: Path, reader: Callable[[Path], object], content: bytes) -> None:
    """Row C03: whatever a file holds, it is read, counts as none, or is refused in words."""
    path = tmp_path / "file"
    path.write_bytes(content)
    path.chmod(0o600)
    try:
        reader(path)
    except A2mcpError as error:
        assert error.hint or error.text  # noqa: PT017  # Either is right, but nothing else.


def test_what_the_operator_granted_is_not_lost_with_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Promise P5: what was acknowledged is kept. A disk may give the file back the next time."""
    from a2mcp.clock import SystemClock

    path = tmp_path / "grants.json"
    path.write_bytes(b'{"grants": [half')
    grants = Grants(path, SystemClock())
    grants.add("bash")
    assert (tmp_path / "grants.json.unreadable").read_bytes() == b'{"grants": [half'
    assert [grant.tool for grant in Grants(path, SystemClock()).list()] == ["bash"]


def test_a_store_of_events_is_written_on_after_a_kill_in_its_log(daemon: Daemon) -> None:
    """Row Q04: the write-ahead log that a kill has left, cut at any page, costs events and no start."""
    wal = daemon.home / "events.db-wal"
    assert wal.exists()
    whole = wal.read_bytes()
    for cut in (0, 16, 31, 32, 100, len(whole) // 2, len(whole) - 1):
        wal.write_bytes(whole[:cut])
        (daemon.home / "events.db-shm").unlink(missing_ok=True)
        with closing(sqlite3.connect(daemon.home / "events.db")) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    require_usual_start(daemon)


def test_a_lock_that_a_killed_daemon_left_does_not_matter(daemon: Daemon) -> None:
    """Row C07: the lock is the kernel's; what stands in the file is nobody's business."""
    (daemon.home / "lock").write_text(str(os.getpid()))
    held = instance.claim(home_from_environment({"A2MCP_HOME": str(daemon.home)}))
    held.release()
    require_usual_start(daemon)
