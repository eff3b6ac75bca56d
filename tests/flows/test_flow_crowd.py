"""Many calls at once: each is answered, recorded in a pair, and costs no thread."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from crowd import Caller, call, callers, drive
from harness import Daemon, lasting_port, running, until
from inflight import WITH_TOOLS, Later, unpaired

CONNECTIONS = 500
EACH = 20
CALLS = CONNECTIONS * EACH
KILLS = 6
"""``tests/soak`` has more of them, at any moment; here the log is one file that grows from life to life."""
WIDE = {"audit": {"bytes": 512 << 20}}
"""A log that does not rotate during a test."""


def echoes(daemon: Daemon, connections: int, each: int, tag: str = "") -> list[list[bytes]]:
    """The requests of a crowd: every call says a text of its own."""
    session = daemon.session().session
    assert session is not None
    return [
        [call(daemon.token, session, i, "echo", {"text": f"{tag}{c}/{i}"}) for i in range(each)]
        for c in range(connections)
    ]


def completed(crowd: list[Caller]) -> Counter[str]:
    """What the answered calls said."""
    return Counter(
        body["result"]["content"][0]["text"] for caller in crowd for status, body in caller.answers if status == 200
    )


def whole_lines(daemon: Daemon) -> list[dict[str, Any]]:
    """The records in both files; fails at the first that is torn."""
    records = daemon.audit()
    for name in ("a2mcp.log.1", "a2mcp.log"):
        path = daemon.home / name
        if path.exists():
            assert path.read_bytes().endswith(b"\n")
    assert all({"ts", "id", "sid", "phase", "tool", "args"} <= record.keys() for record in records)
    return records


def size_of_log(daemon: Daemon) -> int:
    log = daemon.home / "a2mcp.log"
    return log.stat().st_size if log.exists() else 0


def threads(daemon: Daemon) -> int:
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(re.search(r"Threads:\s+(\d+)", status).group(1))  # type: ignore[union-attr]


@pytest.mark.slow
def test_ten_thousand_calls_leave_twenty_thousand_records(tmp_path: Path) -> None:
    """Issue, "What it must show": every pair complete, none torn."""
    with running(tmp_path / "home", argv=WITH_TOOLS, settings=WIDE) as daemon:
        before = threads(daemon)
        with callers(daemon.port, echoes(daemon, CONNECTIONS, EACH)) as crowd:
            drive(crowd)
            assert threads(daemon) == before, "no thread for a connection or a call"
            assert sum(completed(crowd).values()) == CALLS
            assert set(completed(crowd).values()) == {1}
            assert all([body["id"] for _, body in caller.answers] == list(range(EACH)) for caller in crowd)

        records = [record for record in whole_lines(daemon) if record["tool"] == "echo"]
        assert len(records) == 2 * CALLS
        assert Counter(Counter(record["id"] for record in records).values()) == {2: CALLS}
        assert unpaired(records) == set()
        begun: set[str] = set()
        for record in records:
            assert (record["phase"] == "done") == (record["id"] in begun), "start, then done"
            begun.add(record["id"])
        said = Counter(record["args"]["text"] for record in records)
        assert set(said.values()) == {2}
        assert len(said) == CALLS


@pytest.mark.slow
def test_rotations_under_load_lose_no_record_uncounted(tmp_path: Path) -> None:
    """Issue, "What it must show": across rotations that are forced to happen, counting what rotated away."""
    with running(tmp_path / "home", argv=WITH_TOOLS) as daemon:
        with callers(daemon.port, echoes(daemon, CONNECTIONS, EACH)) as crowd:
            drive(crowd)
            assert sum(completed(crowd).values()) == CALLS
        counts = json.loads(daemon.session().call("counts").text)
        records = whole_lines(daemon)

        assert counts["failures"] == 0
        assert counts["written"] == 2 * CALLS + 1, "and the start of the call that counts"
        assert counts["rotated_away"] > 0
        assert len(records) + counts["rotated_away"] == counts["written"] + 1
        assert json.loads(daemon.cli("status", "--json").stdout)["audit"] == {
            "written": 2 * CALLS + 2,
            "failures": 0,
            "last": records[-1]["seq"],
            "hash": records[-1]["hash"],
        }
        assert daemon.cli("audit", "--verify").returncode == 0
        for name in ("a2mcp.log", "a2mcp.log.1"):
            assert (daemon.home / name).stat().st_size <= 512 * 1024
        seen = Counter(record["id"] for record in records)
        assert max(seen.values()) == 2
        assert unpaired(records) == set(), "what is left is the end of the log, so every start has its done"


@pytest.mark.slow
def test_killed_under_load_again_and_again_it_needs_no_hand(tmp_path: Path) -> None:
    """D03 and issue, "What it must show": every start without done is a call that did not complete."""
    port = lasting_port()
    daemon = Daemon(tmp_path / "home", argv=WITH_TOOLS, settings=WIDE | {"port": port})
    answered: set[str] = set()
    slowest = 0.0
    try:
        for cycle in range(KILLS):
            began = time.monotonic()
            daemon.start()
            slowest = max(slowest, time.monotonic() - began)
            assert daemon.port == port
            daemon.alive()
            enough = size_of_log(daemon) + 40_000
            with callers(daemon.port, echoes(daemon, 40, 200, f"{cycle}:")) as crowd:
                load = Later(lambda crowd=crowd: drive(crowd))
                until(lambda enough=enough: size_of_log(daemon) > enough, what="a load")
                os.kill(daemon.process.pid, signal.SIGKILL)
                daemon.process.wait(10)
                load.result()
                answered |= set(completed(crowd))
            daemon.kill()
        daemon.start()
        daemon.alive()
    finally:
        daemon.kill()

    assert slowest < 5
    records = _intact(daemon)
    begun = {record["id"]: record["args"]["text"] for record in records if record["phase"] == "start"}
    ended = {record["id"] for record in records if record["phase"] == "done"}
    never = {begun[each] for each in unpaired(records)}
    assert never.isdisjoint(answered)
    assert answered <= {begun[each] for each in ended}
    assert len(answered) > KILLS


def _intact(daemon: Daemon) -> list[dict[str, Any]]:
    """The records of a log whose writer was killed: a line may be torn, but none swallows the next."""
    records = []
    torn = 0
    for line in (daemon.home / "a2mcp.log").read_bytes().splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            torn += 1
    assert torn <= KILLS
    return [record for record in records if record["tool"] == "echo"]
