"""What a test of P4 needs: something to attack, an attacker in a process of its own, and the pulse meanwhile."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import wire
from crowded import crowded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Daemon

PAUSE_S = 0.005
STRANGERS = 10
"""Every tenth ping is a stranger's, on a connection of its own."""
ATTACKS = Path(__file__).with_name("attacks.py")


class Pulse:
    """How long pings took, in seconds.

    Args:
        waits: that.
        noise: how much longer than asked for each pause between them was, which is nothing of the daemon's doing.
        starved: the share of the time in which the daemon's loop could have run, and others had its processor.
    """

    def __init__(self, waits: list[float], noise: list[float], starved: float) -> None:
        self._waits = sorted(waits)
        self.noise = sorted(noise)[len(noise) * 99 // 100]
        self.starved = starved

    def share(self, share: float) -> float:
        """What this share of the pings is below."""
        return self._waits[int(len(self._waits) * share)]

    @property
    def p99(self) -> float:
        return self.share(0.99)

    @property
    def worst(self) -> float:
        return self._waits[-1]

    def __str__(self) -> str:
        shown = " / ".join(f"{seconds * 1000:.1f}" for seconds in (self.share(0.5), self.p99, self.worst))
        return f"{shown} ms (median / p99 / worst of {len(self._waits)}), starved {self.starved:.0%}"


def feel(daemon: Daemon, seconds: float, least: int = 1) -> Pulse:
    """Ping for a while, never more than one at a time: on a connection that is kept, and now and then on a new one.

    Args:
        daemon: whom to ping.
        seconds: how long.
        least: pings, for which it may go on for ten times as long: of fewer than 200, p99 would be the worst.
    """
    waits, noise = [], []
    began_at, starved = time.monotonic(), _starved_s(daemon)
    ends = began_at + seconds
    with wire.Line(daemon.port) as kept:
        while (now := time.monotonic()) < ends or (len(waits) < least and now < ends + 9 * seconds):
            began = time.perf_counter()
            if len(waits) % STRANGERS:
                _ping(kept, daemon.token)
            else:
                with wire.Line(daemon.port) as stranger:
                    _ping(stranger, daemon.token)
            answered = time.perf_counter()
            time.sleep(PAUSE_S)
            waits.append(answered - began)
            noise.append(time.perf_counter() - answered - PAUSE_S)
    starved = (_starved_s(daemon) - starved) / (time.monotonic() - began_at)
    return Pulse(waits, noise, starved)


def _starved_s(daemon: Daemon) -> float:
    """How long the loop's thread has waited for a processor so far; nothing where the kernel does not count it."""
    counted = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/schedstat")
    return int(counted.read_text().split()[1]) / 1e9 if counted.exists() else 0.0


def _ping(line: wire.Line, token: str) -> None:
    line.send(wire.post(wire.message("ping"), token, path="/mcp"))
    assert line.answer().result == {}


def prepare(ground: Path) -> None:
    """Make what the attacks use: a share with a large file and a folder of thousands, and files that are work to read."""
    crowded(ground / "share" / "many", (f"file number {number}.txt" for number in range(5000)))
    with (ground / "share" / "large").open("wb") as large:
        large.truncate(1 << 28)
    (ground / "lines").write_text("\n".join(f"line {number} of many that are alike" for number in range(5_000)))
    (ground / "odd").write_bytes(("Größe und Äpfel, façade " * 20 + "\n").encode("cp1252") * 30)


@contextlib.contextmanager
def attacked(daemon: Daemon, attack: str, ground: Path) -> Iterator[None]:
    """Have the daemon attacked for the length of a block.

    The attacker yields the processor to everybody: it stands for one elsewhere, which would not use ours.
    """
    command = ["nice", "-n", "19", sys.executable, str(ATTACKS), attack]
    target = {"port": daemon.port, "token": daemon.token, "session": daemon.session().session, "ground": str(ground)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as attacker:
        assert attacker.stdin is not None
        assert attacker.stdout is not None
        attacker.stdin.write(json.dumps(target) + "\n")
        attacker.stdin.flush()
        assert attacker.stdout.readline() == "under way\n"
        yield
        assert attacker.poll() is None, "the attacker gave up"
        attacker.stdin.close()
        attacker.wait(20)
