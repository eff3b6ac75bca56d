"""Large files through a real daemon: what they cost it, and what is left of them when it ends."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from harness import running, until

MIB = 1 << 20
LARGE = 160


@pytest.fixture(scope="module")
def roomy(tmp_path_factory):
    """A daemon that the tests of this module share; a file may be larger than a gigabyte."""
    home = tmp_path_factory.mktemp("roomy") / "home"
    with running(home, settings={"xfer": {"upload_bytes": 8 << 30}}) as daemon:
        yield daemon


@pytest.fixture
def sharing(roomy, tmp_path):
    """That daemon and a folder that it shares."""
    folder = tmp_path / "shared"
    folder.mkdir()
    assert roomy.session().call("xfer_share", path=str(folder)).result["isError"] is False
    yield roomy, folder
    roomy.session().call("xfer_stop")


def highest_rss(daemon) -> int:
    """The most memory that the daemon had so far."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text("ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def put(daemon, name, pieces, length):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    connection.request(
        "PUT", f"/xfer/{name}", pieces, {"Authorization": f"Bearer {daemon.token}", "Content-Length": str(length)}
    )
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_a_large_file_goes_both_ways_for_little_memory_and_nobody_waits(sharing):
    """Issue: an upload costs no second copy and under 20 MB of memory; ping goes on meanwhile."""
    daemon, folder = sharing
    put(daemon, "warm", b"x" * MIB, MIB)
    before = highest_rss(daemon)
    piece, slowest, over = os.urandom(MIB), 0.0, threading.Event()
    client = daemon.session()

    def ping():
        nonlocal slowest
        while not over.is_set():
            began = time.monotonic()
            client.ask("ping")
            slowest = max(slowest, time.monotonic() - began)
            over.wait(0.01)

    pinging = threading.Thread(target=ping)
    pinging.start()
    try:
        assert put(daemon, "large", iter([piece] * LARGE), LARGE * MIB) == 201
        assert (folder / "large").stat().st_size == LARGE * MIB
        digest = hashlib.sha256()
        connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
        connection.request("GET", "/xfer/large", headers={"Authorization": f"Bearer {daemon.token}"})
        response = connection.getresponse()
        while data := response.read(MIB):
            digest.update(data)
        connection.close()
    finally:
        over.set()
        pinging.join()
    assert digest.hexdigest() == hashlib.sha256(piece * LARGE).hexdigest()
    assert highest_rss(daemon) - before < 20_000_000
    assert highest_rss(daemon) < 80_000_000
    assert slowest < 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_upload_that_the_end_of_the_daemon_breaks_off_leaves_nothing(tmp_path, number):
    """Issue: interrupted, and nothing is left, by the daemon's own end either."""
    folder = tmp_path / "shared"
    folder.mkdir()
    with running(tmp_path / "home", settings={"drain_s": 0.1}) as daemon:
        assert daemon.session().call("xfer_share", path=str(folder)).result["isError"] is False
        with socket.create_connection(("127.0.0.1", daemon.port)) as sock:
            head = f"PUT /xfer/a/half HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {daemon.token}\r\nContent-Length: 9000000\r\n\r\n"
            sock.sendall(head.encode() + b"x" * 3_000_000)
            until(lambda: list(folder.glob(".a2mcp-*")), what="the upload begins")
            daemon.stop(number)
        assert list(folder.iterdir()) == []


def test_a_share_that_is_closed_leaves_no_descriptor_behind(sharing):
    """Ours: of the folder, or of what was read from it."""
    daemon, folder = sharing
    (folder / "f").write_bytes(b"x")
    client = daemon.session()

    def held() -> list[str]:
        names = []
        for fd in Path(f"/proc/{daemon.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # Closed meanwhile.
                names.append(str(fd.readlink()))
        return [name for name in names if name.startswith(str(folder))]

    for _ in range(20):
        client.call("xfer_share", path=str(folder))
        assert client.send("GET", "/xfer/f").body == b"x"
    until(lambda: held() == [str(folder)], what="only the folder is held")
    client.call("xfer_stop")
    until(lambda: held() == [], what="the folder is let go")
