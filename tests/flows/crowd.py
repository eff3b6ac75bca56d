"""Many connections from one thread, each with its calls already sent: a crowd that does not wait for itself."""

from __future__ import annotations

import contextlib
import json
import re
import resource
import selectors
import socket
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def raise_limit(descriptors: int) -> None:
    """Let this process have so many sockets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))


class Caller:
    """One connection and the answers it got, by JSON-RPC id."""

    def __init__(self, port: int, requests: list[bytes]) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.sock.setblocking(False)
        self.out = b"".join(requests)
        self.left = len(requests)
        self.answers: list[tuple[int, Any]] = []
        self._in = b""

    def write(self) -> None:
        """Send what the socket takes."""
        with contextlib.suppress(BlockingIOError):
            self.out = self.out[self.sock.send(self.out) :]

    def read(self) -> None:
        """Take what has come; raises ``ConnectionError`` at the end of the stream."""
        try:
            data = self.sock.recv(65536)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError
        self._in += data
        while (end := self._in.find(b"\r\n\r\n")) >= 0:
            head = self._in[:end]
            found = _LENGTH.search(head)
            total = end + 4 + int(found.group(1) if found else 0)
            if len(self._in) < total:
                return
            self.answers.append((int(head.split(b" ", 2)[1]), json.loads(self._in[end + 4 : total] or b"null")))
            self._in = self._in[total:]
            self.left -= 1


def post(token: str, session: str, message: dict[str, Any]) -> bytes:
    """One request as bytes."""
    body = json.dumps(message).encode()
    head = (
        f"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"mcp-session-id: {session}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def call(token: str, session: str, number: int, tool: str, arguments: dict[str, Any]) -> bytes:
    """One ``tools/call`` as bytes."""
    params = {"name": tool, "arguments": arguments}
    return post(token, session, {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


@contextlib.contextmanager
def callers(port: int, requests: list[list[bytes]]) -> Iterator[list[Caller]]:
    """Connections that have not sent anything yet; closed at the end."""
    raise_limit(2 * len(requests) + 200)
    there: list[Caller] = []
    try:
        there.extend(Caller(port, each) for each in requests)
        yield there
    finally:
        for caller in there:
            caller.sock.close()


def drive(crowd: list[Caller], *, seconds: float = 60.0, send_only: bool = False) -> None:
    """Send everything and read every answer; whoever loses its connection stays behind with what it has."""
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for caller in crowd:
            selector.register(caller.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, caller)
        while selector.get_map():
            assert time.monotonic() < deadline, "the crowd was not served in time"
            for key, events in selector.select(1.0):
                caller = key.data
                try:
                    if events & selectors.EVENT_WRITE and caller.out:
                        caller.write()
                    if events & selectors.EVENT_READ:
                        caller.read()
                except ConnectionError:
                    selector.unregister(caller.sock)
                    continue
                if not caller.out:
                    if send_only or not caller.left:
                        selector.unregister(caller.sock)
                    else:
                        selector.modify(caller.sock, selectors.EVENT_READ, caller)
