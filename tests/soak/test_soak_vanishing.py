"""Clients that vanish in the middle of a call: the call ends as if they were there, and their connection is given back."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

import wire
from figures import Figures, in_flight, of
from harness import running, until
from inflight import WITH_TOOLS, ended, started, unpaired
from others import Others, complaints

if TYPE_CHECKING:
    from pathlib import Path

CLIENTS = of(200, 4_000)
AT_ONCE = 50
QUIET_S = 60.0


def vanish(sock: socket.socket, *, reset: bool) -> None:
    """Leave, by a reset or by an ordinary end."""
    if reset:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def test_clients_that_vanish_take_nothing_with_them(tmp_path: Path, figures: Figures) -> None:
    """Issue 5, section 3, and row B13: what was begun ends and is recorded; sockets, workers and slots are free again."""
    with running(tmp_path / "home", argv=WITH_TOOLS, settings={"audit": {"bytes": 64 << 20}}) as daemon:
        others = Others(daemon)
        others.ask()
        session = daemon.session().session
        before, weight = daemon.descriptors, daemon.rss_mb
        calls = (
            wire.call("bash", command=f"sleep 0.05; echo >> {tmp_path}/done"),
            wire.call("bash", command="sleep 0.05", wait=0),
            wire.call("read", path="/etc/hostname"),
            wire.call("echo", text="x" * 100),
        )
        for begun in range(0, CLIENTS, AT_ONCE):
            lines = [wire.Line(daemon.port) for _ in range(AT_ONCE)]
            for number, line in enumerate(lines):
                line.send(wire.post(calls[number % len(calls)], daemon.token, session=session))
            for number, line in enumerate(lines):
                vanish(line.socket, reset=number % 2 == 0)
            if begun % (5 * AT_ONCE) == 0:
                others.ask()
        until(lambda: in_flight(daemon) == 0, what="every call has ended", seconds=QUIET_S)
        until(lambda: daemon.descriptors <= before + 4, what="all is given back", seconds=QUIET_S)
        daemon.alive()
        figures.note(clients=CLIENTS, memory_MB=f"{weight:.1f} to {daemon.rss_mb:.1f}")
        figures.note(descriptors=f"{before} to {daemon.descriptors}", slowest_of_all_others_ms=others.worst_ms)
        lines_written = (tmp_path / "done").read_bytes().count(b"\n")
        assert unpaired(daemon.audit()) == set()
        assert complaints(daemon) == []

    assert len(ended(daemon, "echo")) == len(started(daemon, "echo"))
    # A request that was reset with its connection may never have arrived; what did arrive ran to its end.
    ran = [record for record in started(daemon, "bash") if "/done" in record["args"]["command"]]
    assert lines_written == len(ran)
    assert len(ran) > CLIENTS / 8
