"""Operators who look on while the daemon works: pages and terminals that are told every event.

Their connections are real, and everything that comes is read, by one thread; what a browser then draws is not our
server's doing and stays out.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import selectors
import socket
import threading
from typing import TYPE_CHECKING, Final

from a2mcp.http.ui import KEY_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.catalog import Server

PAGES: Final = 20
TERMINALS: Final = 20
_PATIENCE_S: Final = 10.0


@contextlib.contextmanager
def watching(server: Server) -> Iterator[None]:
    """Have pages and terminals look on until the block is left.

    Raises:
        OSError: one of them is not let in.
    """
    assert server.home is not None, "only our own daemon is watched"
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(_terminal(server.home / "events.sock")) for _ in range(TERMINALS)]
        crowd += [stack.enter_context(_page(server)) for _ in range(PAGES)]
        stack.enter_context(_read(crowd))
        yield


def missed(server: Server) -> int:
    """How many events never reached the store, until now."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_PATIENCE_S)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    counts = dict(line.split(" ", 1) for line in lines if not line.startswith("#") and "{" not in line)
    return int(float(counts["a2mcp_events_lost_total"]) + float(counts["a2mcp_events_not_kept_total"]))


def _terminal(path: Path) -> socket.socket:
    sock = _unix(path)
    return _told(sock, ("GET /events HTTP/1.1", "Host: localhost"))


def _page(server: Server) -> socket.socket:
    host = f"127.0.0.1:{server.port}"
    cookie, key = _visit(server, host)
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=_PATIENCE_S)
    return _told(sock, ("GET /ui/api/events HTTP/1.1", f"Host: {host}", f"Cookie: {cookie}", f"{KEY_HEADER}: {key}"))


def _told(sock: socket.socket, lines: tuple[str, ...]) -> socket.socket:
    """Ask for events, and wait for the head of the stream: from then on everything is told."""
    sock.sendall("\r\n".join((*lines, "", "")).encode())
    head = sock.recv(4096)
    if not head.startswith(b"HTTP/1.1 200"):
        raise ConnectionRefusedError(head.partition(b"\r\n")[0].decode())
    return sock


def _visit(server: Server, host: str) -> tuple[str, str]:
    """Follow a fresh link; both halves of the visit."""
    assert server.home is not None
    channel = http.client.HTTPConnection("localhost", timeout=_PATIENCE_S)
    channel.sock = _unix(server.home / "operator.sock")
    with contextlib.closing(channel):
        channel.request("POST", "/page")
        code = json.loads(channel.getresponse().read())["url"].partition("#")[2]
    door = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_PATIENCE_S)
    with contextlib.closing(door):
        door.request("POST", "/ui/enter", code, {"Origin": f"http://{host}", "Host": host})
        response = door.getresponse()
        cookie = (response.getheader("Set-Cookie") or "").partition(";")[0]
        return cookie, json.loads(response.read())["key"]


def _unix(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(_PATIENCE_S)
    sock.connect(str(path))
    return sock


@contextlib.contextmanager
def _read(crowd: list[socket.socket]) -> Iterator[None]:
    """Read everything that comes, in a thread, until the block is left."""
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=_drain, args=(crowd, theirs), name="Watchers", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ours.close()
        thread.join()
        theirs.close()


def _drain(crowd: list[socket.socket], until_closed: socket.socket) -> None:
    with selectors.DefaultSelector() as selector:
        for each in (*crowd, until_closed):
            selector.register(each, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is until_closed:
                    return
                sock = key.fileobj
                if isinstance(sock, socket.socket) and not sock.recv(1 << 16):
                    selector.unregister(sock)
