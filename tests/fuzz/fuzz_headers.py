"""The head of a request: whatever we let through, another strict parser reads in the same way.

An input is the bytes up to the empty line, which is added where it is missing.
"""

from __future__ import annotations

import h11
from waitress.adjustments import Adjustments
from waitress.parser import ParsingError, TransferEncodingNotImplemented
from waitress.utilities import find_double_newline

from a2mcp.http.server.heads import HeadCache, ParsedHead

_ADJUSTMENTS = Adjustments()


def check(data: bytes) -> None:
    """Fail unless the head is refused, or means to us what it means to h11."""
    stream = data.lstrip() + b"\r\n\r\n"
    block = stream[: find_double_newline(stream)]
    cache = HeadCache(_ADJUSTMENTS)
    try:
        remembered = cache.parse(block)
    except (ParsingError, TransferEncodingNotImplemented):
        return
    assert cache.parse(block).head == remembered.head
    head = remembered.head
    if not head.request_uri.isascii():
        return  # Bytes that should have been encoded; h11 takes none, and clients send them.
    request = _read_elsewhere(block)
    assert (request.method, request.target) == (head.command.encode(), head.request_uri.encode("latin-1"))
    assert request.http_version == head.version.encode()
    _has_the_same_headers(head, request)
    _has_the_same_body(head, request)
    assert remembered.environ["PATH_INFO"] == head.raw_path


def _read_elsewhere(block: bytes) -> h11.Request:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    connection.receive_data(block)
    request = connection.next_event()
    assert isinstance(request, h11.Request), request
    return request


def _has_the_same_headers(head: ParsedHead, request: h11.Request) -> None:
    seen: dict[str, list[str]] = {}
    for name, value in request.headers:
        if b"_" not in name:  # Dropped: it could pass for another.
            seen.setdefault(name.decode().upper().replace("-", "_"), []).append(value.decode("latin-1"))
    joined = {name: ", ".join(values) for name, values in seen.items()}
    joined.pop("TRANSFER_ENCODING", None)
    assert joined == head.headers


def _has_the_same_body(head: ParsedHead, request: h11.Request) -> None:
    given = {name: value for name, value in request.headers if name in (b"content-length", b"transfer-encoding")}
    assert head.chunked is (given.get(b"transfer-encoding") is not None)
    assert head.content_length == (0 if head.chunked else int(given.get(b"content-length", b"0")))
    assert len(given) < 2, "two ways to find the end of one body"
