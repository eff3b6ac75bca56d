"""HTTP as bytes on a socket, for what no client library would send or show."""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING, Any, Self

from harness import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable

CRLF = b"\r\n"
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize"}'


def head(first: str, *lines: str | bytes) -> bytes:
    """A request line and header lines, with the empty line that ends them."""
    rows = [first, *lines]
    return CRLF.join(row.encode("latin-1") if isinstance(row, str) else row for row in rows) + CRLF + CRLF


def post(body: bytes, token: str | None, *lines: str | bytes, path: str = "/", session: str | None = None) -> bytes:
    """One whole POST, well formed."""
    usual = ["Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    if token:
        usual.append(f"Authorization: Bearer {token}")
    if session:
        usual.append(f"mcp-session-id: {session}")
    return head(f"POST {path} HTTP/1.1", *usual, *lines) + body


def message(method: str, request_id: Any = 1, params: Any = None) -> bytes:
    """One JSON-RPC request."""
    fields = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return json.dumps(fields if params is None else fields | {"params": params}).encode()


def call(tool: str, request_id: Any = 1, /, **arguments: Any) -> bytes:
    """One ``tools/call``."""
    return message("tools/call", request_id, {"name": tool, "arguments": arguments})


def chunked(*pieces: bytes) -> bytes:
    """A chunked body."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


class Line:
    """A connection on which bytes are sent and whole responses are read."""

    def __init__(self, port: int, *, seconds: float = 10.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self._have = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self.socket.sendall(data)

    def answer(self) -> Answer:
        """Read the next response."""
        while b"\r\n\r\n" not in self._have:
            self._more()
        block, _, self._have = self._have.partition(b"\r\n\r\n")
        first, *rows = block.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in rows)}
        length = int(headers.get("content-length", 0))
        while len(self._have) < length:
            self._more()
        body, self._have = self._have[:length], self._have[length:]
        return Answer(int(first.split()[1]), headers, body)

    def answers(self, count: int) -> list[Answer]:
        """Read that many responses."""
        return [self.answer() for _ in range(count)]

    def ended(self) -> bool:
        """Whether the other side has closed and sent nothing more; waits for it."""
        if self._have:
            return False
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def silent(self, seconds: float) -> bool:
        """Whether nothing comes for a while."""
        before = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        try:
            return not self._have and self.socket.recv(1) is None
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(before)

    def _more(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise AssertionError(f"closed after {self._have[:200]!r}")
        self._have += data


def split_answers(data: bytes) -> list[Answer]:
    """Every response in what a socket said; fails when something is left over."""
    found = []
    while data:
        block, _, data = data.partition(b"\r\n\r\n")
        first, *rows = block.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in rows)}
        length = int(headers.get("content-length", 0))
        found.append(Answer(int(first.split()[1]), headers, data[:length]))
        data = data[length:]
    return found


def statuses(data: bytes) -> list[int]:
    """The status of every response in what a socket said."""
    return [answer.status for answer in split_answers(data)]


def dribble(sock: socket.socket, pieces: Iterable[bytes], pause: float) -> None:
    """Send pieces with a pause before each but the first, so that each arrives by itself."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number, piece in enumerate(pieces):
        if number:
            time.sleep(pause)
        sock.sendall(piece)
