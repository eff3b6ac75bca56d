"""A loopback server that hands out one asset the way a test asks for: whole, in parts, slowly, or not to the end."""

from __future__ import annotations

import contextlib
import hashlib
import io
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = b"#!/bin/sh\necho I am the program\n" + bytes(range(256)) * 800
"""What is to be installed; larger than one piece of a download."""


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def tar_of(*members: tuple[str, bytes | tarfile.TarInfo]) -> bytes:
    """A .tar.gz of files, or of whatever entries are given."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, what in members:
            if isinstance(what, bytes):
                entry = tarfile.TarInfo(name)
                entry.size = len(what)
                archive.addfile(entry, io.BytesIO(what))
            else:
                archive.addfile(what)
    return out.getvalue()


def zip_of(*members: tuple[str, bytes], mode: int = 0o100644) -> bytes:
    """A .zip of files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            archive.writestr(entry, data)
    return out.getvalue()


class Assets:
    """What the server has and how it behaves; and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.data = PROGRAM
        self.status = 200
        self.ranges = True
        self.announce: int | None = -1
        """The Content-Length; -1 is the true one, None is none."""
        self.stop_after: int | None = None
        """Close the connection after this many bytes."""
        self.stall_after: int | None = None
        """Send no more after this many bytes, until the test ends."""
        self.drip: float | None = None
        """Send a byte, then wait this long."""
        self.redirects: dict[str, str] = {}
        self.asked: list[dict[str, Any]] = []
        self.over = threading.Event()

    def behave(self, **how: Any) -> None:
        for name, value in how.items():
            setattr(self, name, value)


class _Handler(BaseHTTPRequestHandler):
    assets: Assets

    def do_GET(self) -> None:
        assets = self.assets
        assets.asked.append({"path": self.path, **{n.lower(): v for n, v in self.headers.items()}})
        if (target := assets.redirects.get(self.path)) is not None:
            self.send_response(302)
            self.send_header("Location", target)
            self.send_header("Set-Cookie", "spy=1")
            self.end_headers()
            return
        with contextlib.suppress(ConnectionError):
            self._send(*self._range())

    def _range(self) -> tuple[int, int]:
        asked = self.headers.get("Range")
        if asked is None or not self.assets.ranges:
            return self.assets.status, 0
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        return (206, start) if start < len(self.assets.data) else (416, 0)

    def _send(self, status: int, start: int) -> None:
        assets = self.assets
        body = b"" if status == 416 else assets.data[start:]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(assets.data) - 1}/{len(assets.data)}")
        if assets.announce is not None:
            self.send_header("Content-Length", str(len(body) if assets.announce < 0 else assets.announce))
        self.end_headers()
        if assets.drip is not None:
            for number in range(len(body)):
                self.wfile.write(body[number : number + 1])
                if assets.over.wait(assets.drip):
                    return
        sent = next((cut for cut in (assets.stop_after, assets.stall_after) if cut is not None), len(body))
        self.wfile.write(body[:sent])
        self.wfile.flush()
        if assets.stall_after is not None:
            assets.over.wait(30)

    def log_message(self, *_args: Any) -> None:
        pass


@contextlib.contextmanager
def serving() -> Iterator[Assets]:
    """The server, for the length of a block."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    assets = Assets(f"http://127.0.0.1:{server.server_address[1]}")
    handler.assets = assets  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield assets
    finally:
        assets.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
