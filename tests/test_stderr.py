"""The stream that a daemon speaks on: it never waits for a reader."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from a2mcp.stderr import Stderr

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        try:
            os.close(fd)
        except OSError:
            continue


def test_what_somebody_reads_arrives_as_it_was_written(pipe: tuple[int, int]) -> None:
    """Ours: any text, also half characters."""
    reader, writer = pipe
    stream = Stderr(writer)
    print("héllo \ud800", file=stream, flush=True)

    assert os.read(reader, 100) == b"h\xc3\xa9llo \\ud800\n"
    assert stream.fileno() == writer
    assert stream.writable()


def test_no_secret_is_said(pipe: tuple[int, int]) -> None:
    """Issue 5, P7: what is logged may quote a caller, an exception or a program."""
    reader, writer = pipe
    print("[a2mcp] tool failed: curl -H 'Authorization: Bearer aB3dE5gH7'", file=Stderr(writer))

    assert os.read(reader, 100) == b"[a2mcp] tool failed: curl -H 'Authorization: Bearer <secret>'\n"


def test_a_full_pipe_takes_nothing_and_holds_up_nobody(pipe: tuple[int, int]) -> None:
    """D06: the reader has stopped; what was dropped is counted for when it goes on."""
    reader, writer = pipe
    stream = Stderr(writer)
    over = threading.Event()

    def speak() -> None:
        for number in range(2000):
            stream.write(f"{number} {'x' * 1000}\n")
        over.set()

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    assert over.wait(10)
    os.set_blocking(reader, False)
    first = _drain(reader)
    stream.write("back again\n")
    then = _drain(reader)

    assert first.startswith(b"0 xxx")
    assert b"messages were dropped" in then
    assert then.endswith(b"back again\n")
    dropped = int(then.split(b"] ", 1)[1].split()[0])
    assert dropped + first.count(b"\n") in (2000, 2001)


def test_a_reader_that_has_gone_is_no_error(pipe: tuple[int, int]) -> None:
    """D05: closed stderr."""
    reader, writer = pipe
    os.close(reader)
    stream = Stderr(writer)

    assert stream.write("nobody\n") == 7
    stream.flush()


def test_a_file_takes_everything(tmp_path: Path) -> None:
    """Ours: a redirected stderr."""
    with (tmp_path / "log").open("wb") as file:
        Stderr(file.fileno()).write("x" * 100_000)

    assert (tmp_path / "log").stat().st_size == 100_000


def _drain(reader: int) -> bytes:
    received = b""
    while True:
        try:
            received += os.read(reader, 65536)
        except BlockingIOError:
            return received
