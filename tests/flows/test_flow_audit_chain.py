"""The chain of the log as a user meets it: a running daemon, the command line, and somebody with the same rights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from harness import ROOT, Client, Daemon, running, until
from inflight import WITH_TOOLS
from watchers import operator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def verified(daemon: Daemon, *args: str) -> tuple[int, Any]:
    """What ``audit --verify --json`` ends with and says."""
    done = daemon.cli("audit", "--verify", "--json", *args)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def echo(client: Client, *texts: str) -> None:
    for text in texts:
        assert client.call("echo", text=text).text == text


def test_a_log_is_one_chain_over_rotations_restarts_and_kills(tmp_path: Path) -> None:
    """Issue, item 8."""
    daemon = Daemon(tmp_path / "home", argv=WITH_TOOLS, settings={"audit": {"bytes": 64 * 1024}})
    try:
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
            daemon.start()
            echo(daemon.session(), *(f"{number}-{n}" for n in range(40)))
            code, told = verified(daemon)
            assert (code, told["daemon"], told["report"]["fault"]) == (0, "agrees", None)
            assert told["report"]["last"] == operator(daemon, "GET", "/status")[1]["audit"]["last"]
            daemon.stop(number)
        code, told = verified(daemon)
        assert (code, told["daemon"], told["report"]["last"]) == (0, "not running", 240)
        assert (daemon.home / "a2mcp.log.1").exists()
    finally:
        daemon.kill()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon whose log nobody touches, for those who only look at it."""
    with running(tmp_path_factory.mktemp("whole") / "home", argv=WITH_TOOLS) as daemon:
        yield daemon


def test_the_last_hash_is_told_by_status_and_found_again(whole: Daemon) -> None:
    """Issue, item 8: what is noted elsewhere shows a log that was written anew."""
    echo(whole.session(), "one")
    noted = json.loads(whole.cli("status", "--json").stdout)["audit"]
    assert f"last record        {noted['last']}, hash {noted['hash']}" in whole.cli("status").stdout
    echo(whole.session(), "two", "three")
    assert verified(whole, "--expect", noted["hash"])[0] == 0
    code, told = verified(whole, "--expect", "0" * 40)
    assert (code, told["expected"], told["report"]["fault"]) == (1, False, None)


def test_a_tail_that_is_cut_off_is_noticed_by_verifying_and_by_the_daemon(tmp_path: Path) -> None:
    """Issue, item 8: somebody with the user's rights takes the last call out of the log."""
    with running(tmp_path / "home", argv=WITH_TOOLS) as daemon:
        echo(daemon.session(), "kept", "gone")
        log = daemon.home / "a2mcp.log"
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[:-2]))
        code, told = verified(daemon)
        fault = {"file": "a2mcp.log", "line": 3, "kind": "removed"}
        assert (code, {name: told["report"]["fault"][name] for name in fault}) == (1, fault)

        echo(daemon.session(), "later")
        changed = f"[a2mcp] audit log changed by somebody else at {log} (it ends with record 2, not 4)"
        until(lambda: changed in daemon.stderr, what="the warning")
        code, told = verified(daemon)
        assert (code, {name: told["report"]["fault"][name] for name in fault}) == (1, fault)
        assert "2 records, 3 to 4, are not there" in told["report"]["fault"]["text"]


def test_records_that_are_followed_make_a_copy_that_can_be_verified(whole: Daemon, tmp_path: Path) -> None:
    """docs/how-to/audit.md: a copy elsewhere is what a writer of the log cannot change."""
    client = whole.session()
    echo(client, "before")
    copy = tmp_path / "copy.jsonl"
    with copy.open("wb") as file:
        following = subprocess.Popen(
            [sys.executable, "-m", "a2mcp", "audit", "--follow", "--json"],
            stdout=file, env={**whole.environment, "PYTHONUNBUFFERED": "1", "PATH": os.environ["PATH"]}, cwd=ROOT,
        )  # fmt: skip
    try:
        # Until it follows, what is written may count as old.
        until(lambda: echo(client, "again") or copy.stat().st_size, what="the first record in the copy")
        echo(client, *"abcdef")
        until(lambda: copy.read_bytes().count(b'"f"') == 2, what="both records of the last call")
    finally:
        following.send_signal(signal.SIGINT)
        following.wait(20)
    code, told = verified(whole, str(copy))
    assert (code, told["report"]["fault"]) == (0, None)
    assert told["report"]["records"] == len(copy.read_bytes().splitlines()) > 12
