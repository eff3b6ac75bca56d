"""Very many connections: those that stay and say nothing, and those that come and go."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import psutil
import wire
from harness import running, until

if TYPE_CHECKING:
    from pathlib import Path

    from figures import Figures

IDLE = 1100


def busy_share(pid: int, *, seconds: float = 0.6) -> float:
    """The share of one processor that a process uses over a while."""
    process = psutil.Process(pid)
    before = process.cpu_times()
    threading.Event().wait(seconds)
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / seconds


def test_over_a_thousand_idle_connections_are_no_burden(tmp_path: Path, figures: Figures) -> None:
    """Z05, section 0 row 2: descriptors over 1023 end nothing; "alive": all given back."""
    with running(tmp_path / "home") as daemon:
        daemon.session()
        until((daemon.home / "events.db-wal").exists, what="the store of events is open")
        before, weight = daemon.descriptors, daemon.rss_mb
        idle = [wire.Line(daemon.port) for _ in range(IDLE)]
        until(lambda: daemon.descriptors > IDLE, what="all are accepted")
        figures.note(connections=IDLE, memory_with_them_MB=f"{weight:.1f} to {daemon.rss_mb:.1f}")

        client = daemon.session()
        assert [client.ask("ping").result for _ in range(50)] == [{}] * 50
        assert "hi" in client.call("bash", command="echo hi").text
        for line in idle[::50]:
            line.send(wire.post(wire.INITIALIZE, daemon.token))
            assert line.answer().status == 200
        assert busy_share(daemon.process.pid) < 0.3

        for line in idle:
            line.socket.close()
        until(lambda: daemon.descriptors <= before + 4, what="all are given back")
        daemon.alive()
        assert daemon.stderr == ""
