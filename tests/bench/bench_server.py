"""A small HTTP server whose every answer a test decides."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

JSON = "content-type: application/json"


@dataclass
class Request:
    """One request as it came; header names in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        return json.loads(self.body) if self.body else {}


Behaviour = Callable[[Request], bytes | None]
"""Gives the raw bytes of the reply; ``None`` resets the connection."""


def reply(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """A reply with a length."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def result(request: Request, **members: Any) -> bytes:
    """A good JSON-RPC reply, with a session on initialize, and 202 for a notification."""
    message = request.message
    if "id" not in message:
        return reply(b"", status="202 Accepted" if message else "204 No Content")
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": members}).encode()
    return reply(body, JSON, *(["mcp-session-id: s-1"] if message["method"] == "initialize" else []))


@dataclass
class FakeServer:
    """Serves until it is closed; remembers what it was asked."""

    behave: Behaviour
    requests: list[Request] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/mcp"

    def asked(self, method: str) -> list[Request]:
        return [request for request in self.requests if request.message.get("method") == method]

    def close(self) -> None:
        self.closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join(5)
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join(5)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                thread = threading.Thread(target=self._serve, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as stream:
            while (request := self._read(stream)) is not None:
                self.requests.append(request)
                answer = self.behave(request)
                if answer is None:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                connection.sendall(answer)
                if b"connection: close" in answer:
                    return

    def _read(self, stream: Any) -> Request | None:
        line = stream.readline().decode().strip()
        if not line:
            return None
        headers = {}
        while text := stream.readline().decode().strip():
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        return Request(line, headers, stream.read(int(headers.get("content-length", 0))))
