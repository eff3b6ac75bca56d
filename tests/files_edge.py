"""The route of files in this process: a share of a folder of the test, behind the real server."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING, Any

import httpx
from edge import TOKEN, Front, edge

from a2mcp.clock import SystemClock
from a2mcp.http.app import make_app
from a2mcp.http.xfer import Files
from a2mcp.xfer.settings import XferSettings
from a2mcp.xfer.share import Share
from a2mcp.xfer.transfers import Transfers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

AUTH = {"Authorization": f"Bearer {TOKEN}"}


class Shares:
    """A ``SharePort`` of one share, which the test may close or take away."""

    def __init__(self, share: Share | None, **options: Any) -> None:
        self.share = share
        self.settings = XferSettings(**options)
        self.transfers = Transfers(SystemClock())

    def current(self) -> Share | None:
        return self.share

    def options(self) -> XferSettings:
        return self.settings

    def upstream(self) -> None:
        return None


class FilesEdge:
    """A running server, its share, and a client that has the token."""

    def __init__(self, shares: Shares, port: int, client: httpx.Client, running: Any) -> None:
        self.shares = shares
        self.port = port
        self.client = client
        self.running = running

    def ask(self, method: str, path: str = "", /, **options: Any) -> httpx.Response:
        return self.client.request(method, f"/xfer/{path}", **options)

    def get(self, path: str = "", **headers: str) -> httpx.Response:
        return self.ask("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def raw(self, target: str, method: str = "GET", body: bytes = b"", *headers: str) -> tuple[int, bytes]:
        """Send a request target byte for byte; the status and everything that came."""
        with self.connect() as sock:
            lines = [
                f"{method} {target} HTTP/1.1",
                "Host: 127.0.0.1",
                f"Authorization: Bearer {TOKEN}",
                "Connection: close",
            ]
            if body:
                lines.append(f"Content-Length: {len(body)}")
            sock.sendall("\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body)
            answer = b"".join(iter(lambda: sock.recv(1 << 16), b""))
        return int(answer.split(b" ", 2)[1]), answer

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/xfer/"


@contextlib.contextmanager
def files_edge(path: Path, *, share: Share | None = None, **options: Any) -> Iterator[FilesEdge]:
    """Serve a path for the length of a block."""
    limit = options.pop("body_bytes", 1 << 30)
    shares = Shares(share or Share.open(path), **options)
    files = Files(shares)
    with (
        edge(app=make_app(Front(), files), sinks=files.sink, body_bytes=limit) as running,
        httpx.Client(base_url=f"http://127.0.0.1:{running.port}", headers=AUTH, timeout=20) as client,
    ):
        yield FilesEdge(shares, running.port, client, running)
    files.settle(5)
    if shares.share is not None:
        shares.share.close()


def until(condition: Callable[[], object], what: str, seconds: float = 10) -> None:
    """Wait for something to become so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def leftovers(folder: Path) -> list[str]:
    """The temporary files anywhere below a folder."""
    return [found.name for found in folder.rglob(".a2mcp-*")]
