"""What a connection still has to send: pieces of any size and kind arrive whole, in order, however little is taken."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a2mcp.http.server import outbox
from a2mcp.http.server.outbox import SMALL, TOGETHER, Outbox, Truncated
from a2mcp.protocol.response import FilePart

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATA = os.urandom(60_000)


class Peer:
    """A socket that takes as much as the test says, and then nothing for once."""

    def __init__(self, appetites: list[int]) -> None:
        self.got = b""
        self.sends = 0
        self._appetites = iter(appetites)

    def send(self, data: bytes) -> int:
        self.sends += 1
        taken = bytes(data)[: next(self._appetites, len(data))]
        if data and not taken:
            raise BlockingIOError
        self.got += taken
        return len(taken)


class File:
    """An open file that is asked what happens to it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.moved = self.closed = 0

    def fileno(self) -> int:
        return self._fd

    def sent(self, count: int) -> None:
        assert count > 0
        self.moved += count

    def overdue(self, _still_s: float) -> bool:
        return False

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def _without_sendfile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_HAS_SENDFILE", False)  # It wants a real socket.


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "data").write_bytes(DATA)
    opened = os.open(tmp_path / "data", os.O_RDONLY)
    yield opened
    os.close(opened)


SIZES = st.one_of(st.integers(0, 50), st.integers(SMALL - 1, SMALL + 1), st.integers(0, 30_000))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    pieces=st.lists(st.tuples(st.booleans(), st.integers(0, 30_000), SIZES), max_size=30),
    appetites=st.lists(st.integers(0, 3000) | st.integers(0, 90_000), max_size=60),
    budget=st.sampled_from([1, 100, TOGETHER, 1 << 20]),
)
def test_every_byte_arrives_once_and_every_file_is_closed_once(
    fd: int, pieces: list[tuple[bool, int, int]], appetites: list[int], budget: int
) -> None:
    """Ours: small pieces are sent together, and any part of that may be taken."""
    box, peer = Outbox(), Peer(appetites)
    files = []
    for is_file, start, length in pieces:
        if is_file:
            files.append(File(fd))
            box.add(FilePart(files[-1], start, length))
        else:
            box.add(DATA[start : start + length])
    while box._pieces:
        box.send(peer, budget)  # type: ignore[arg-type]

    assert peer.got == b"".join(DATA[start : start + length] for _, start, length in pieces)
    assert box.size == 0
    assert [file.closed for file in files] == [1] * len(files)
    assert [file.moved for file in files] == [length for is_file, _, length in pieces if is_file]


def test_dozens_of_small_ranges_are_one_send(fd: int) -> None:
    """P4, row X11: each by itself kept the loop from everybody else."""
    box, peer = Outbox(), Peer([])
    for number in range(64):
        box.add(b"--boundary\r\n")
        box.add(FilePart(File(fd), number * 100, 1))
    box.send(peer, 1 << 20)  # type: ignore[arg-type]

    assert peer.sends == 1
    assert len(peer.got) == 64 * 13


def test_a_file_that_became_shorter_ends_the_connection(fd: int) -> None:
    """Ours: what was promised cannot be kept, and the client must not take the next bytes for it."""
    box = Outbox()
    box.add(FilePart(File(fd), len(DATA) - 5, 10))
    with pytest.raises(Truncated):
        box.send(Peer([]), 100)  # type: ignore[arg-type]
