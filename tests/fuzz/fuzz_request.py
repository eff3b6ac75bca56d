"""A request as it comes in: the same however it is cut, and its body the one that another strict parser finds.

The first byte of an input says where the rest is cut.
"""

from __future__ import annotations

from typing import Any

import h11
from waitress.adjustments import Adjustments

from a2mcp.auth.bearer import Bearer
from a2mcp.auth.origin import AllowedHosts
from a2mcp.errors import RequestError
from a2mcp.http.guard import Guard
from a2mcp.http.server.heads import HeadCache
from a2mcp.http.server.parser import RequestParser

TOKEN = "t" * 43
_ADJUSTMENTS = Adjustments(max_request_header_size=4096)
_LARGEST = 1000


def check(data: bytes) -> None:
    """Fail unless the stream is read as one request, refused, or waited on, and the same in whatever pieces."""
    stream, step = data[1:], (data[0] if data else 0) % 17 + 1
    whole, left = _read(stream, len(stream) or 1)
    parts, left_of_parts = _read(stream, step)
    if whole.empty:
        assert parts.error is not None or parts.empty or not parts.completed, "white space became a request"
    elif whole.error is None and whole.completed:
        assert _said(parts) == _said(whole)
        assert left == left_of_parts
        if whole.request_uri.isascii():
            _is_what_h11_reads(whole, stream, left)
    elif whole.error is None:
        assert parts.error is None
        assert parts.completed is whole.completed
    else:
        assert isinstance(whole.error, RequestError)
        assert parts.error is not None or not parts.completed, "let in because of how it was cut"


def _read(stream: bytes, step: int) -> tuple[RequestParser, bytes]:
    guard = Guard(Bearer(TOKEN, report=lambda _line: None), AllowedHosts("127.0.0.1"), body_bytes=_LARGEST)
    parser = RequestParser(_ADJUSTMENTS, guard, HeadCache(_ADJUSTMENTS), from_here=False)
    left = stream
    while left and not parser.completed:
        taken = parser.received(left[:step])
        assert taken <= step
        left = left[taken or step :] if not parser.completed else left[taken:]
    return parser, left


def _said(parser: RequestParser) -> tuple[Any, ...]:
    return parser.command, parser.raw_path, parser.query, parser.headers, _body(parser), parser.error, parser.empty


def _body(parser: RequestParser) -> bytes:
    if parser.body_rcv is None:
        return b""
    file = parser.body_rcv.getfile()
    file.seek(0)
    return bytes(file.read())


def _is_what_h11_reads(parser: RequestParser, stream: bytes, left: bytes) -> None:
    assert parser.headers.get("AUTHORIZATION", "")[:6].lower() == "bearer" or parser.raw_path in ("/healthz", "/readyz")
    read = stream[: len(stream) - len(left)].lstrip()
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    connection.receive_data(read)
    request, body = connection.next_event(), b""
    assert isinstance(request, h11.Request), request
    assert request.method == parser.command.encode()
    try:
        while isinstance(event := connection.next_event(), h11.Data):
            body += bytes(event.data)
        assert isinstance(event, h11.EndOfMessage), event
        assert not connection.trailing_data[0]
    except h11.RemoteProtocolError:  # It reads trailers, which we drop, and takes no empty line before a chunk.
        assert parser.chunked
        body = _chunks(read[read.index(b"\r\n\r\n") + 4 :])
    assert body == _body(parser)


def _chunks(data: bytes) -> bytes:
    """The body of a chunked request that ends where the data does."""
    body, size = b"", -1
    while size:
        line, _, data = data.partition(b"\r\n")
        if line:
            size = int(line.partition(b";")[0], 16)
            body, data = body + data[:size], data[size:]
            assert not size or data[:2] == b"\r\n"
            data = data[2:] if size else data
    assert data == b"\r\n" or data.index(b"\r\n\r\n") == len(data) - 4
    return body
