"""Peers that are slow with what they send or read: they wait for themselves, cost little, and leave nothing behind."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Self

import pytest
import wire
from figures import LONG, Figures, of
from harness import Daemon, running, until
from others import Others, complaints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PEERS = of(40, 200)
READERS = of(40, 80)
"""Of answers: each has a call in flight as long as the sockets take more, and the others queue behind those."""
SECONDS = of(2, 30)
FILE_BYTES = 32 << 20
HEAVIER_MB = 40.0
A_CALL_MB = 0.75
"""Of a call that is being worked: the file, its lines, the answer. As many as there are workers are under way at a time, so
128 of them are the most that it comes to, however many peers there are."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Daemon, Path]]:
    """A daemon that shares a folder with one large file."""
    folder = tmp_path / "shared"
    folder.mkdir()
    with (folder / "large.bin").open("wb") as file:
        file.truncate(FILE_BYTES)
    with running(tmp_path / "home") as daemon:
        answer = daemon.session().call("xfer_share", path=str(folder))
        assert answer.result["isError"] is False
        yield daemon, folder


class Slow:
    """Peers that go on slowly, and what that costs the daemon and the others."""

    def __init__(self, daemon: Daemon, peers: int = PEERS) -> None:
        self.others = Others(daemon)
        self.others.ask()
        self._daemon = daemon
        self._before, self._weight = daemon.descriptors, daemon.rss_mb
        self._heaviest = self._weight
        self.lines = [wire.Line(daemon.port) for _ in range(peers)]

    def go_on(self, step: Callable[[wire.Line], object], seconds: float) -> None:
        """Have every peer take steps for a while, and everybody else be served in between."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for line in self.lines:
                # The daemon may have had enough of it.
                with contextlib.suppress(OSError):
                    step(line)
            self.others.ask()
            self._heaviest = max(self._heaviest, self._daemon.rss_mb)
            time.sleep(0.1)  # Their pace, not a wait for anything.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for line in self.lines:
            line.socket.close()

    def note(self, figures: Figures, *, heavier_mb: float = HEAVIER_MB) -> None:
        """Note what they cost, once they have left and the daemon has back what they held."""
        until(lambda: self._daemon.descriptors <= self._before + 4, what="all is given back")
        figures.note(
            peers=len(self.lines), seconds=SECONDS, memory_MB=f"{self._weight:.1f} to {self._heaviest:.1f} at most"
        )
        figures.note(slowest_of_all_others_ms=self.others.worst_ms)
        self._daemon.alive()
        assert self._heaviest - self._weight < heavier_mb
        assert complaints(self._daemon) == []


def test_slow_writers_of_bodies_hold_up_nobody(served: tuple[Daemon, Path], figures: Figures) -> None:
    """Issue 5, section 3, and row H09: a byte now and then of a body; after 20 s under the rate they are cut with 408."""
    daemon, _ = served
    with Slow(daemon) as slow:
        whole = wire.post(wire.call("write", path="/nowhere", content="x" * 100_000), daemon.token, path="/mcp")
        for line in slow.lines:
            line.send(whole[:1000])
        slow.go_on(lambda line: line.send(b"x"), SECONDS)
        if LONG:
            assert [line.answer().status for line in slow.lines] == [408] * PEERS
    slow.note(figures)
    assert not any(record["tool"] == "write" for record in daemon.audit())


def test_slow_writers_of_heads_hold_up_nobody(served: tuple[Daemon, Path], figures: Figures) -> None:
    """Issue 5, section 3, and row H09: a byte of a head now and then; after 20 s they are cut with 408."""
    daemon, _ = served
    with Slow(daemon) as slow:
        for line in slow.lines:
            line.send(b"POST / HTTP/1.1\r\nX-")
        slow.go_on(lambda line: line.send(b"x"), SECONDS)
        if LONG:
            assert [line.answer().status for line in slow.lines] == [408] * PEERS
    slow.note(figures)


def test_slow_readers_of_answers_hold_up_nobody(served: tuple[Daemon, Path], figures: Figures) -> None:
    """Issue 5, section 3, and section 0 row 8: hundreds of large answers asked for in one go, and read by the byte."""
    daemon, folder = served
    (folder / "text").write_text("a line of text\n" * 3000)
    with Slow(daemon, READERS) as slow:
        asked = wire.post(wire.call("read", path=str(folder / "text")), daemon.token, path="/mcp") * 200
        for line in slow.lines:
            line.send(asked)
        slow.go_on(lambda line: line.socket.recv(1), SECONDS)
    slow.note(figures, heavier_mb=A_CALL_MB * READERS)


def test_slow_readers_of_a_share_hold_up_nobody(served: tuple[Daemon, Path], figures: Figures) -> None:
    """Issue 5, section 3: many downloads of a large file that are hardly read; the file is in nobody's memory."""
    daemon, _ = served
    with Slow(daemon) as slow:
        head = wire.head("GET /xfer/large.bin HTTP/1.1", "Host: localhost", f"Authorization: Bearer {daemon.token}")
        for line in slow.lines:
            line.send(head)
        slow.go_on(lambda line: line.socket.recv(1), SECONDS)
    slow.note(figures)


def test_slow_writers_to_a_share_leave_no_file(served: tuple[Daemon, Path], figures: Figures) -> None:
    """Issue 5, section 3, and row X10: many uploads that crawl and then break off; nothing of them stays."""
    daemon, folder = served
    with Slow(daemon) as slow:
        for number, line in enumerate(slow.lines):
            line.send(
                wire.head(
                    f"PUT /xfer/upload-{number} HTTP/1.1",
                    "Host: localhost",
                    f"Authorization: Bearer {daemon.token}",
                    "Content-Length: 1000000",
                )
            )
        slow.go_on(lambda line: line.send(b"x" * 100), SECONDS)
    slow.note(figures)
    until(lambda: [path.name for path in folder.iterdir()] == ["large.bin"], what="no part of an upload is left")
