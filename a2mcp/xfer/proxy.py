"""One request passed on to the program that serves a share in our stead, and its response back.

Owns what is changed on the way: the caller's credentials become those of this share, what belongs to one connection
stays on it, and a response that is not plain HTTP is none. Everything else goes through as it is, redirects too. It
blocks, so each exchange has a thread; ``abort`` ends it from any other.
"""

from __future__ import annotations

import contextlib
import re
import select
import socket
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Headers = tuple[tuple[str, str], ...]

HEAD_BYTES: Final = 64 * 1024
"""Of the head of a response, and of each line between chunks."""
PIECE: Final = 64 * 1024

_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OURS: Final = frozenset(
    {"authorization", "accept-encoding", "content-length", "cookie", "expect", "host", "x-a2mcp-token"}
)
"""Of a request: replaced, or nobody's business."""
_KEPT_BACK: Final = frozenset({"content-length", "set-cookie", "www-authenticate"})
"""Of a response: the length is written anew, that the program asks for credentials is between us, and cookies of this
address are not the program's to set."""

_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: ([\t\x20-\x7e\x80-\xff]*))?")
_FIELD: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")
_BODILESS: Final = frozenset({204, 304})


class Unreachable(OSError):
    """There is no response that could be passed on."""


class Truncated(OSError):
    """The response ended, or stood still, before it was whole."""


class Upstream(msgspec.Struct, frozen=True):
    """Where the program listens on the loopback interface, and the credentials of this share."""

    port: int
    authorization: str

    def __repr__(self) -> str:
        # SECURITY: the one that a struct writes by itself would put the credentials into any traceback.
        return f"Upstream(port={self.port!r})"


class Body(Protocol):
    """What a request carries."""

    def read(self, size: int, /) -> bytes:
        """The next bytes; none at the end."""
        ...


class Request(msgspec.Struct, frozen=True):
    """What is passed on."""

    method: str
    target: str
    """Path and query, as they stand in the request line."""
    headers: Headers
    body: Body | None = None
    length: int = 0
    """Bytes of the body."""


class Head(msgspec.Struct, frozen=True):
    """The head of a response, as it goes on to the client."""

    status: int
    reason: str
    headers: Headers
    length: int | None
    """Bytes of the body; None when only its end tells. Of HEAD and 304: what is said of the body that is not sent."""
    has_body: bool


class Exchange:
    """One request and its response, on a connection of its own.

    Args:
        upstream: whom to ask.
        stall_s: how long it may keep silent.
    """

    def __init__(self, upstream: Upstream, *, stall_s: float) -> None:
        self._upstream = upstream
        self._stall_s = stall_s
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.settimeout(stall_s)
        self._read = b""
        self._chunked = False
        self._left: int | None = 0

    @property
    def port(self) -> int:
        """Whom it asks."""
        return self._upstream.port

    def ask(self, request: Request) -> Head:
        """Pass the request on; the head of the response.

        Raises:
            Unreachable: nobody listens, nobody answers, or what comes is no response.
        """
        try:
            self._socket.connect(("127.0.0.1", self._upstream.port))
            with contextlib.suppress(ConnectionError):  # It may have answered before it had all.
                self._send(request)
            return self._head(request.method)
        except Unreachable:
            raise
        except OSError as cause:
            raise Unreachable(f"no response: {cause}") from cause

    def pieces(self) -> Iterator[bytes]:
        """Give the body piece by piece.

        Raises:
            Truncated: it is not whole.
        """
        try:
            yield from self._chunks() if self._chunked else self._plain()
        except Truncated:
            raise
        except OSError as cause:
            raise Truncated(f"the response broke off: {cause}") from cause

    def abort(self) -> None:
        """End it; whoever waits in here is told. Called from any thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the connection."""
        self._socket.close()

    # --- the request ----------------------------------------------------------------------------------------------

    def _send(self, request: Request) -> None:
        self._socket.sendall(_request_head(request, self._upstream))
        if request.body is None:
            return
        poller = select.poll()
        poller.register(self._socket, select.POLLIN | select.POLLOUT)
        while piece := memoryview(request.body.read(PIECE)):
            while piece:
                (ready,) = poller.poll(self._stall_s * 1000) or [(0, 0)]
                if not ready[1]:
                    raise Unreachable("the body is not taken")
                if ready[1] & ~select.POLLOUT:
                    return  # It answers before it has all, or has gone.
                piece = piece[self._socket.send(piece) :]

    # --- the response ---------------------------------------------------------------------------------------------

    def _head(self, method: str) -> Head:
        while True:
            status, reason, fields = self._next_head()
            if status >= 200:  # Whatever is below comes before the response itself.
                break
        length = self._framing(fields)
        has_body = method != "HEAD" and status not in _BODILESS
        self._left = length if has_body else 0
        self._chunked = self._chunked and has_body
        dropped = _HOP_BY_HOP | _KEPT_BACK | _named_by_connection(fields)
        kept = tuple((name, value) for name, value in fields if name.lower() not in dropped)
        return Head(status, reason, kept, length, has_body)

    def _next_head(self) -> tuple[int, str, Headers]:
        while (end := self._read.find(b"\r\n\r\n")) < 0:
            if len(self._read) > HEAD_BYTES:
                raise Unreachable("the head of the response is too long")
            if not (data := self._socket.recv(PIECE)):
                raise Unreachable("the connection ended without a response")
            self._read += data
        if end > HEAD_BYTES:
            raise Unreachable("the head of the response is too long")
        head, self._read = self._read[:end], self._read[end + 4 :]
        first, *lines = head.split(b"\r\n")
        status = _STATUS.fullmatch(first)
        if status is None:
            raise Unreachable("what came is no response")
        return int(status[1]), (status[2] or b"").decode("latin-1"), tuple(map(_field, lines))

    def _framing(self, fields: Headers) -> int | None:
        """Say how long the body is, and remember whether it is chunked. What could be read in two ways is refused."""
        codings = [value.lower() for name, value in fields if name.lower() == "transfer-encoding"]
        lengths = {value for name, value in fields if name.lower() == "content-length"}
        self._chunked = codings == ["chunked"]
        if (codings and (lengths or not self._chunked)) or len(lengths) > 1:
            raise Unreachable("the length of the response is not clear")
        if not lengths:
            return None
        (length,) = lengths
        if not re.fullmatch(r"[0-9]{1,18}", length):
            raise Unreachable("the length of the response is not clear")
        return int(length)

    def _plain(self) -> Iterator[bytes]:
        while self._left != 0:
            piece = self._some(self._left)
            if not piece:
                if self._left is None:
                    return
                raise Truncated("the response ended early")
            if self._left is not None:
                self._left -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while True:
            size = _CHUNK.fullmatch(self._line())
            if size is None:
                raise Truncated("a chunk without a size")
            self._left = int(size[1], 16)
            if not self._left:
                return  # A trailer belongs to the connection, which ends here.
            yield from self._plain()
            if self._line():
                raise Truncated("a chunk without an end")

    def _line(self) -> bytes:
        while (end := self._read.find(b"\r\n")) < 0:
            if len(self._read) > HEAD_BYTES:
                raise Truncated("a line between chunks is too long")
            if not (data := self._socket.recv(PIECE)):
                raise Truncated("the response ended early")
            self._read += data
        line, self._read = self._read[:end], self._read[end + 2 :]
        return line

    def _some(self, most: int | None) -> bytes:
        data = self._read or self._socket.recv(PIECE)
        piece, self._read = (data, b"") if most is None else (data[:most], data[most:])
        return piece


def _request_head(request: Request, upstream: Upstream) -> bytes:
    dropped = _HOP_BY_HOP | _OURS | _named_by_connection(request.headers)
    headers = [(name, value) for name, value in request.headers if name.lower() not in dropped]
    headers += [
        ("Host", f"127.0.0.1:{upstream.port}"),
        ("Authorization", upstream.authorization),
        # Compressed here, it could not be passed on in pieces of known length.
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
    ]
    if request.body is not None:
        headers.append(("Content-Length", str(request.length)))
    lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _named_by_connection(headers: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Name the headers that ``Connection`` says belong to one connection."""
    values = (value for name, value in headers if name.lower() == "connection")
    return frozenset(word.strip().lower() for value in values for word in value.split(","))


def _field(line: bytes) -> tuple[str, str]:
    found = _FIELD.fullmatch(line)
    if found is None:
        # SECURITY: a bare line break or a control character would become a header of ours.
        raise Unreachable("a header of the response is malformed")
    return found[1].decode("ascii"), found[2].decode("latin-1")
