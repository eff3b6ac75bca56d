"""A response as the bytes that are sent, head and body in one piece."""

from __future__ import annotations

import time
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from a2mcp.protocol.response import JSON

if TYPE_CHECKING:
    from a2mcp.protocol.response import Response

_REASONS: Final = {status.value: status.phrase for status in HTTPStatus}
_BODILESS: Final = frozenset({204, 304})


class _Date:
    """The Date header, made once a second."""

    def __init__(self) -> None:
        self._second = -1
        self._text = b""

    def __call__(self) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._text = formatdate(second, usegmt=True).encode()
            self._second = second
        return self._text


_date = _Date()

# SECURITY: results hold what files and commands say, so no browser may take one for a page.
_NO_SNIFF: Final = "X-Content-Type-Options: nosniff\r\n"
_JSON: Final = f"Content-Type: {JSON}\r\n{_NO_SNIFF}".encode()


def _head_start(status: int) -> bytes:
    return b"HTTP/1.1 %d %b\r\n" % (status, _REASONS.get(status, "Unknown").encode())


# ``X-Accel-Buffering`` keeps a proxy from holding events back.
_EVENTS: Final = (
    b"Content-Type: text/event-stream\r\nX-Content-Type-Options: nosniff\r\n"
    b"Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n"
)
_STARTS: Final = {status: _head_start(status) for status in _REASONS}


def encode(response: Response, *, close: bool, version: str, head_only: bool = False) -> bytes:
    """Write a response out.

    A body always goes with its length, because without one Waitress's contract, and HTTP's, is to close afterwards.

    Args:
        response: what to send.
        close: the connection ends after it.
        version: of the request, ``1.0`` or ``1.1``; only the first must be told that the connection stays.
        head_only: the request was HEAD.
    """
    status, length = response.status, response.length
    lines = [_STARTS.get(status) or _head_start(status), b"Date: ", _date(), b"\r\n"]
    if length:
        lines.append(_JSON if response.content_type is JSON else _kind(response.content_type))
    if status not in _BODILESS:
        lines.append(b"Content-Length: %d\r\n" % length)
    lines.extend(f"{name}: {value}\r\n".encode("latin-1") for name, value in response.headers)
    if close:
        lines.append(b"Connection: close\r\n")
    elif version == "1.0":
        lines.append(b"Connection: keep-alive\r\n")
    lines.append(b"\r\n")
    if not head_only and not response.parts:
        lines.append(response.body)
    return b"".join(lines)


def _kind(content_type: str) -> bytes:
    return f"Content-Type: {content_type}\r\n{_NO_SNIFF}".encode("latin-1")


def stream_head(*, chunked: bool, close: bool) -> bytes:
    """The head of an event stream. One that is not chunked ends where its connection does."""
    coding = b"Transfer-Encoding: chunked\r\n" if chunked else b""
    ending = b"Connection: close\r\n" if close or not chunked else b""
    return b"".join((_STARTS[200], b"Date: ", _date(), b"\r\n", _EVENTS, coding, ending, b"\r\n"))


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK: Final = b"0\r\n\r\n"
