"""Disks that are full, or take a part of what is written: calls go on, nothing torn stays, and all of it mends itself."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from harness import until
from inflight import WITH_TOOLS
from live import Live
from small_disk import NOT_THERE, Inside, can_mount, small_disk
from state import endpoint_token, records, require_clear_refusal, require_readable, require_whole_log, token_of

from a2mcp.errors import A2mcpError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

small = pytest.mark.skipif(not can_mount(), reason=NOT_THERE)
limited = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="prlimit is Linux's")


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Inside]:
    """A daemon whose home is on a disk of 1 MiB."""
    with small_disk(tmp_path / "small", "size=1m") as disk:
        daemon = Inside(disk, tmp_path / "stderr.txt", argv=WITH_TOOLS, settings={"port": 0}).start()
        daemon.session().call("echo", text="before")
        # While it is made, the store of events takes room that it gives back.
        until((disk.seen / "events.db-wal").exists, what="the store of events is open")
        yield daemon
        daemon.kill()


# --- a full disk --------------------------------------------------------------------------------------------------


@small
def test_a_full_disk_stops_no_call_and_logging_resumes_by_itself(full: Inside) -> None:
    """Rows U04, F11; issue, item 2: ENOSPC from a real file system. What is lost is counted, and its place is marked."""
    disk, client = full._disk, full.session()
    disk.fill()
    for number in range(30):
        assert client.call("echo", text=f"full {number}").text == f"full {number}"

    def loses() -> int:
        disk.fill()  # Somebody may have given a little back since.
        client.call("echo", text="still full")
        return int(audit(full)["failures"])

    lost = until(loses, what="a record that is lost")
    assert "audit record not written" in full.stderr

    disk.free()
    assert client.call("echo", text="room again").text == "room again"
    texts = [record["args"].get("text") for record in records(disk.seen)]
    assert texts[-2:] == ["room again", "room again"]
    assert audit(full)["failures"] == lost
    assert "Traceback" not in full.stderr, full.stderr
    assert full.cli("audit", "--verify").returncode == 0, full.cli("audit", "--verify").stdout
    assert full.stop() == 0
    require_readable(disk.seen)


@small
def test_a_full_disk_is_told_to_whoever_needs_it(full: Inside) -> None:
    """Rows C02, F11, B10: the token, a file, the output of a command; each refusal says why and changes nothing."""
    disk, client = full._disk, full.session()
    (disk.seen / "kept.txt").write_text("as it was")
    disk.fill()
    rotated = full.cli("rotate")
    require_clear_refusal(rotated.returncode, rotated.stderr)
    assert "Make room on the disk." in rotated.stderr
    assert token_of(disk.seen) == endpoint_token(disk.seen) == full.token

    written = client.call("write", path=str(disk.folder / "kept.txt"), content="x" * 100_000)
    assert written.result["isError"] is True
    assert "No space left" in written.text
    assert (disk.seen / "kept.txt").read_text() == "as it was"

    ran = client.call("bash", command="head -c 300000 /dev/zero | tr '\\0' x; exit 3").result["structuredContent"]
    assert ran["exitCode"] == 3
    assert ran["truncated"] is True
    assert [path.name for path in disk.seen.rglob(".a2mcp-*")] == []

    disk.free()
    assert full.cli("rotate").returncode == 0
    assert client.call("jobs", action="list").status == 401, "the token from before"


@small
@pytest.mark.parametrize("room", [0, 4096])
def test_a_start_on_a_full_disk_says_so_and_the_next_one_needs_no_hand(full: Inside, room: int) -> None:
    """Rows C02, Q03: the endpoint cannot be written, or a page of it can."""
    disk = full._disk
    assert full.stop() == 0
    disk.fill(leave=room)
    with subprocess.Popen(
        [*disk.inside, sys.executable, "-m", "a2mcp", "serve"],
        env=full.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as started:  # fmt: skip
        assert started.stdout is not None
        serves = bool(started.stdout.readline())
        if serves:
            started.terminate()
        _, said = started.communicate(timeout=30)
    assert serves is bool(room), said
    if not serves:
        require_clear_refusal(started.returncode, said)
        assert "Make room on the disk." in said
    disk.free()
    full.start()
    full.alive()
    assert full.stop() == 0
    require_readable(disk.seen)


@small
def test_a_disk_without_room_for_a_name_is_a_full_disk(tmp_path: Path) -> None:
    """Row U04: inode exhaustion."""
    with small_disk(tmp_path / "small", "size=8m,nr_inodes=14") as disk:
        daemon = Inside(disk, tmp_path / "stderr.txt", settings={"port": 0}).start()
        try:
            client = daemon.session()
            for number in range(14):
                job = client.call("bash", command=f"echo {number}; exec sleep 0.01", wait=0)
                assert job.result["isError"] is False, job.text
            assert "Traceback" not in daemon.stderr, daemon.stderr
            assert "Make room on the disk." in daemon.cli("rotate").stderr
            daemon.alive()
            assert daemon.stop() == 0
            require_readable(disk.seen)
        finally:
            daemon.kill()


def audit(daemon: Inside) -> dict[str, int]:
    """What became of the records, as the operator is told."""
    said: dict[str, int] = json.loads(daemon.cli("status", "--json").stdout)["audit"]
    return said


# --- a write of which a part is taken -----------------------------------------------------------------------------


@pytest.fixture
def roomy(tmp_path: Path) -> Iterator[Live]:
    """A daemon whose log does not rotate."""
    settings = {"port": 0, "audit": {"bytes": 8 << 20}}
    daemon = Live(tmp_path / "home", argv=WITH_TOOLS, settings=settings).begin()
    try:
        yield daemon
    finally:
        daemon.kill()


@limited
def test_a_record_cut_at_any_byte_swallows_no_other(roomy: Live) -> None:
    """Row U04 and section 0 row 21: a short write, then EFBIG, for every byte of a call's two records."""
    live, log = roomy, roomy.home / "a2mcp.log"
    live.ask("echo", text="the first")
    size = log.stat().st_size
    live.ask("echo", text="how long")
    length = log.stat().st_size - size
    assert length > 400
    before = live.counts()
    for cut in range(length + 1):
        with at_most(live.process.pid, log.stat().st_size + cut):
            assert live.ask("echo", text=f"cut {cut:04}")["isError"] is False
        assert live.ask("echo", text=f"as {cut:05}")["isError"] is False
    counts = live.counts()
    assert counts["failures"] > length, "nothing was cut"
    assert len(records(live.home)) == counts["written"] + 1
    assert counts["written"] + counts["failures"] - before["written"] == 4 * (length + 1) + 2
    require_whole_log(live.home)
    assert "Traceback" not in live.stderr, live.stderr


@limited
def test_settings_cut_at_any_byte_are_the_old_ones(live: Live) -> None:
    """Row C02: a short write into the new file, for every byte of it; the endpoint, which is longer, follows later."""
    old = (live.home / "a2mcp.json").read_bytes()
    for cut in range(0, len(old), 7):
        with at_most(live.process.pid, cut), pytest.raises(A2mcpError, match="cannot be written: File too large"):
            live.operator.rotate()
        assert (live.home / "a2mcp.json").read_bytes() == old
        assert [path.name for path in live.home.glob(".a2mcp-*")] == []
    with at_most(live.process.pid, len(old) + 8):
        token = live.operator.rotate()
    assert token_of(live.home) == token
    until(lambda: endpoint_token(live.home) == token, what="the endpoint with the new token")
    live.use_token()
    assert live.client_.ask("ping").result == {}


class at_most:  # noqa: N801  # Reads as what it does.
    """Let a process make no file larger than so many bytes, for the length of a block."""

    def __init__(self, pid: int, size: int) -> None:
        self._pid = pid
        self._size = size

    def __enter__(self) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (self._size, resource.RLIM_INFINITY))

    def __exit__(self, *_: object) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
