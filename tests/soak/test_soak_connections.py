"""Very many connections: those that stay and say nothing, and those that come and go."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING

import psutil
import wire
from figures import Figures, of
from harness import Daemon, running, until
from others import Others, complaints

if TYPE_CHECKING:
    from pathlib import Path

IDLE = 1100
VISITS = of(2_000, 20_000)
ASKED_EVERY = of(200, 500)
QUIET_SHARE = 0.05


def busy_share(pid: int, *, seconds: float = 0.6) -> float:
    """The share of one processor that a process uses over a while."""
    process = psutil.Process(pid)
    before = process.cpu_times()
    threading.Event().wait(seconds)
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / seconds


def visit(daemon: Daemon, data: bytes, *, reset: bool) -> None:
    """Connect, send this, and leave."""
    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as sock:
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.sendall(data)


def test_over_a_thousand_idle_connections_are_no_burden(tmp_path: Path, figures: Figures) -> None:
    """Z05, section 0 row 2: descriptors over 1023 end nothing; "alive": all given back."""
    with running(tmp_path / "home") as daemon:
        others = Others(daemon)
        others.ask()
        until((daemon.home / "events.db-wal").exists, what="the store of events is open")
        before, weight = daemon.descriptors, daemon.rss_mb
        idle = [wire.Line(daemon.port) for _ in range(IDLE)]
        until(lambda: daemon.descriptors > IDLE, what="all are accepted")
        figures.note(connections=IDLE, memory_MB=f"{weight:.1f} to {daemon.rss_mb:.1f}")

        for _ in range(5):
            others.ask()
        figures.note(slowest_of_all_others_ms=others.worst_ms)
        for line in idle[::50]:
            line.send(wire.post(wire.INITIALIZE, daemon.token))
            assert line.answer().status == 200
        assert busy_share(daemon.process.pid) < 0.3

        for line in idle:
            line.socket.close()
        until(lambda: daemon.descriptors <= before + 4, what="all are given back")
        daemon.alive()
        assert complaints(daemon) == []


def test_those_who_connect_and_leave_hold_up_nobody(tmp_path: Path, figures: Figures) -> None:
    """Issue 5, section 3, and Z05: 20,000 connect and reset, or close, at any point of a request; quiet afterwards."""
    with running(tmp_path / "home") as daemon:
        others = Others(daemon)
        others.ask()
        before, weight = daemon.descriptors, daemon.rss_mb
        whole = wire.post(wire.INITIALIZE, daemon.token)
        left_at = (b"", b"P", whole[:40], whole[:-10], whole, wire.post(wire.INITIALIZE, "wrong" * 9), b"\x16\x03\x01")
        for number in range(VISITS):
            visit(daemon, left_at[number % len(left_at)], reset=number % 3 != 0)
            if number % ASKED_EVERY == 0:
                others.ask()
        daemon.alive()
        until(lambda: daemon.descriptors <= before + 4, what="all are given back")
        until(lambda: busy_share(daemon.process.pid) < QUIET_SHARE, what="it is quiet again")
        figures.note(visits=VISITS, memory_MB=f"{weight:.1f} to {daemon.rss_mb:.1f}")
        figures.note(descriptors=f"{before} to {daemon.descriptors}", slowest_of_all_others_ms=others.worst_ms)
        assert daemon.rss_mb - weight < 8
        assert complaints(daemon) == []
