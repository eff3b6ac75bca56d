"""What is being moved through the share, as the edge counts it."""

from __future__ import annotations

import contextlib
import os
import socket

import msgspec
import pytest
from edge import TOKEN
from files_edge import files_edge
from harness import until

SIZE = 64 * 1024 * 1024


@pytest.fixture
def served(tmp_path):
    """A share with a file that no socket buffer holds."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "small").write_bytes(b"x" * 1000)
    with (shared / "big").open("wb") as file:
        file.truncate(SIZE)
    with files_edge(shared) as made:
        yield made


def begun(served, first: str, *headers: str) -> socket.socket:
    """A request whose answer nobody reads yet."""
    sock = served.connect()
    lines = [f"{first} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {TOKEN}", *headers]
    sock.sendall("\r\n".join([*lines, "", ""]).encode())
    return sock


def running(served):
    return served.shares.transfers.running()


def rest_of(sock: socket.socket) -> int:
    """How much comes until the end."""
    with sock, contextlib.suppress(ConnectionError):
        return sum(map(len, iter(lambda: sock.recv(1 << 20), b"")))
    return 0


def test_a_download_is_seen_while_it_runs_and_counted_when_it_ends(served):
    """Issue 6.2 and 6.5: downloads running, with progress; bytes shared."""
    sock = begun(served, "GET /xfer/big", "Connection: close")
    (one,) = until(lambda: [each for each in running(served) if each.moved > 0], what="it is seen")
    assert (one.direction, one.name, one.total) == ("download", "big", SIZE)
    assert one.moved < SIZE

    assert rest_of(sock) > SIZE
    until(lambda: not running(served), what="it has ended")
    assert served.shares.transfers.bytes_moved() == {"download": SIZE, "upload": 0}


def test_an_upload_is_seen_while_it_runs_and_counted_though_it_breaks_off(served):
    """Issue 6.2 and 6.5."""
    sock = begun(served, "PUT /xfer/new", f"Content-Length: {SIZE}")
    sock.sendall(b"y" * 300_000)
    (one,) = until(lambda: [each for each in running(served) if each.moved == 300_000], what="it is seen")
    assert (one.direction, one.name, one.total) == ("upload", "new", SIZE)

    sock.close()
    until(lambda: not running(served), what="it has ended")
    assert served.shares.transfers.bytes_moved() == {"download": 0, "upload": 300_000}


@pytest.mark.parametrize("first", ["GET /xfer/big", "PUT /xfer/new"])
def test_the_operator_ends_one_transfer_and_the_share_stays(served, first):
    """Issue 6.2: stop."""
    sock = begun(served, first, *([f"Content-Length: {SIZE}"] if first.startswith("PUT") else []))
    if first.startswith("PUT"):
        sock.sendall(b"y" * 1000)
    (one,) = until(lambda: [each for each in running(served) if each.moved > 0], what="it is seen")

    assert served.shares.transfers.stop(one.id)
    sock.settimeout(10)
    assert rest_of(sock) < SIZE
    until(lambda: not running(served), what="it has ended")
    assert not served.shares.transfers.stop(one.id)
    assert served.get("small").status_code == 200
    assert not (served.shares.share.path / "new").exists()


def test_a_name_that_is_not_utf8_can_be_shown(served):
    """Row F06: the operator's channel answers in JSON, which holds no such name."""
    name = b"caf\xff"
    (served.shares.share.path / "big").rename(served.shares.share.path / os.fsdecode(name))
    sock = begun(served, "GET /xfer/caf%FF")
    (one,) = until(lambda: [each for each in running(served) if each.moved > 0], what="it is seen")
    assert msgspec.json.decode(msgspec.json.encode(one))["name"] == "caf\\xff"
    sock.close()
    until(lambda: not running(served), what="it has ended")


def test_ranges_count_what_they_send(served):
    """Ours: of several ranges the total is their sum."""
    assert served.get("small", Range="bytes=0-9").status_code == 206
    assert served.get("small", Range="bytes=0-9,20-29").status_code == 206
    # What was sent is counted behind the sending, so the reader may be done first.
    until(lambda: served.shares.transfers.bytes_moved()["download"] == 30, what="both are counted")
    until(lambda: not running(served), what="they have ended")


@pytest.mark.parametrize(("method", "path"), [("HEAD", "big"), ("GET", "none"), ("GET", ""), ("PROPFIND", "")])
def test_what_moves_no_file_is_no_transfer(served, method, path):
    """Ours."""
    served.ask(method, path)
    until(lambda: not running(served), what="it has ended")
    assert served.shares.transfers.bytes_moved() == {"download": 0, "upload": 0}
