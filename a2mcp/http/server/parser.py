"""One request as it comes in: the head is judged as soon as it is whole, the body is collected under its limit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from waitress.buffers import OverflowableBuffer
from waitress.parser import HTTPRequestParser
from waitress.receiver import ChunkedReceiver, FixedStreamReceiver

from a2mcp.errors import BodyTooLarge, HeadersTooLarge, InvalidRequest, NotImplementedByServer, RequestError
from a2mcp.http.server.sinks import Sink, Sinks, no_sinks

if TYPE_CHECKING:
    from collections.abc import Callable

    from waitress.adjustments import Adjustments

    from a2mcp.http.guard import Judge
    from a2mcp.http.server.heads import HeadCache, ParsedHead
    from a2mcp.http.server.parked import Parked

WAITRESS_ERRORS: Final[dict[int, type[RequestError]]] = {
    413: BodyTooLarge,
    431: HeadersTooLarge,
    501: NotImplementedByServer,
}
CHUNK_LINE_BYTES: Final = 1024
"""Of the line before a chunk, and of the trailer. Waitress has no limit, and copies what it has with every read."""
HEADER_LINES: Final = 256
"""Each costs time, and all of it before the token is looked at."""
USUAL_BYTES: Final = 4096
"""Within these almost every head ends."""
CRUMBS_BYTES: Final = 2048
"""Of small chunks, looked at in one turn."""
CHUNK_FRAMING_BYTES: Final = 1 << 20
"""Of everything between chunks, beside a sixteenth of the body: what is thrown away costs too."""

_METHOD_CHARACTERS: Final = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_EMPTY_LINES: Final = re.compile(rb"\A(?:\r\n)*(?:\r\Z)?")
"""What may stand before a request (RFC 9112 §2.2), and half of one that is still coming."""
_BARE_LF: Final = re.compile(rb"(?<!\r)\n")


class RequestParser(HTTPRequestParser):  # type: ignore[misc]  # Waitress has no types.
    """A request in the making.

    ``error`` is one of ours once anything is wrong, and then ``completed`` is set and no more is read: a request is
    refused when its head ends, not after its body.
    """

    error: RequestError | None
    # What a request is as long as its head cannot be read: its refusal is answered like any other.
    command: str = ""
    request_uri: str = "/"
    raw_path: str = "/"
    parked: Parked | None = None
    """The promise of this request's response, once the app has given one."""
    query: str = ""
    authority: str = ""
    environ: dict[str, Any]
    """The part of the WSGI environment that the head decides; to be copied, not changed."""

    def __init__(  # noqa: PLR0913  # The last two have names at the call.
        self,
        adj: Adjustments,
        guard: Judge,
        cache: HeadCache,
        sinks: Sinks = no_sinks,
        *,
        from_here: bool = False,
        shown_token: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(adj)
        self.from_here = from_here
        self._guard = guard
        self._cache = cache
        self._sinks = sinks
        self._shown_token = shown_token
        self.sink: Sink | None = None
        """Where the body goes, when it does not go into memory."""
        self._refusal: RequestError | None = None

    def received(self, data: bytes) -> int:
        """Take bytes of the stream; how many of them belong to this request."""
        looked_at = len(self.header_plus)
        # Waitress drops any white space before a request, but only where it comes with the rest of the head.
        begins = self.headers_finished or _begins_a_head(self.header_plus, data)
        if begins and not self.headers_finished and _has_too_many_lines(self.header_plus, data):
            self._refuse(_refusal_of_lines())
            return len(data)
        consumed: int = super().received(data)
        # Waitress parses a stand-in head when the real one is too long, so its 431 counts before what that one says.
        too_long = self.error is not None and getattr(self.error, "code", 0) == HeadersTooLarge.status
        error: Any = self.error if too_long else self._refusal or self.error
        if error is None:
            error = self._fault(looked_at) if begins or self.empty else InvalidRequest("bad request: this is not HTTP")
        if error is not None:
            self._refuse(error)
        return consumed

    def at_once(self, size: int) -> int:
        """How many of so many bytes are looked at before others get their turn."""
        receiver = self.body_rcv
        if not isinstance(receiver, ChunkedReceiver):
            return size
        # PERF: a chunk may be a byte, and each costs as much as a large one, and a copy of what is behind it.
        return min(size, int(receiver.chunk_remainder) + CRUMBS_BYTES)

    def _fault(self, looked_at: int) -> RequestError | None:
        """What is wrong with what came so far, although Waitress would wait for more."""
        if not self.headers_finished:
            # PERF: only what is new is searched; a head may come byte by byte.
            ends_otherwise = _BARE_LF.search(self.header_plus, looked_at)
            return InvalidRequest("bad request: this is not HTTP") if ends_otherwise else None
        receiver = self.body_rcv
        if self.sink is not None and self.sink.fault is not None:
            return self.sink.fault
        return self._fault_of_chunks(receiver) if isinstance(receiver, ChunkedReceiver) else None

    def _fault_of_chunks(self, receiver: Any) -> RequestError | None:
        if (too_large := self._guard.too_large(self.raw_path, len(receiver))) is not None:
            return too_large
        if self.body_bytes_received - len(receiver) > CHUNK_FRAMING_BYTES + len(receiver) // 16:
            return BodyTooLarge("the body has more framing than its size accounts for")
        if max(len(receiver.control_line), len(receiver.trailer)) > CHUNK_LINE_BYTES:
            return InvalidRequest("bad request: a line between chunks is too long")
        if _BARE_LF.search(receiver.trailer):  # There others see the next request begin.
            return InvalidRequest("bad request: a bare LF is in the trailer")
        return None

    def parse_header(self, header_plus: bytes) -> None:
        """Take the head from the cache or parse it, then let the guard judge it. Called by Waitress."""
        # Two more lines are the request's and the empty one.
        if header_plus.count(b"\n") > HEADER_LINES + 2:
            self._refusal = _refusal_of_lines()
            return
        remembered = self._cache.parse(header_plus)
        self._take(remembered.head)
        self.environ = remembered.environ
        generation = self._guard.generation
        if remembered.allowed_in != generation:
            self._refusal = self._guard.refusal(self)
            if self._refusal is not None:
                return
            if self._guard.judges_by_head(self.raw_path):
                remembered.allowed_in = generation
                remembered.shows_token = self._guard.asks_for_token(self.raw_path)
        if remembered.shows_token:
            self._shown_token()
        try:
            self.body_rcv = self._receiver()
        except RequestError as refusal:
            self._refusal = refusal

    def _take(self, head: ParsedHead) -> None:
        self.command = head.command
        self.version = head.version
        self.request_uri = head.request_uri
        self.raw_path = head.raw_path
        self.query = head.query
        self.authority = head.authority
        # Waitress writes the counted length into the headers of a chunked request; the remembered head stays as it is.
        self.headers = dict(head.headers) if head.chunked else head.headers
        self.connection_close = head.connection_close
        # Waitress would go on waiting for a body that was not announced.
        self.expect_continue = head.expect_continue and (head.chunked or head.content_length > 0)
        self.chunked = head.chunked
        self.content_length = head.content_length

    def _receiver(self) -> FixedStreamReceiver | ChunkedReceiver | None:
        if not self.chunked and not self.content_length:
            return None
        self.sink = self._sinks(self)
        buffer = OverflowableBuffer(self.adj.inbuf_overflow) if self.sink is None else self.sink
        if self.chunked:
            return ChunkedReceiver(buffer)
        return FixedStreamReceiver(self.content_length, buffer)

    def _refuse(self, error: Any) -> None:
        """End the request here. Waitress's own errors become ours, with its words about what is wrong.

        SECURITY: without the line it quotes, which may hold the token.
        """
        if not isinstance(error, RequestError):
            kind = WAITRESS_ERRORS.get(error.code, InvalidRequest)
            said = error.body.partition(' "')[0]
            error = kind(f"bad request: {said}")
        self.error = error
        self.completed = True
        self.expect_continue = False


def _refusal_of_lines() -> HeadersTooLarge:
    return HeadersTooLarge(f"bad request: more than {HEADER_LINES} headers")


def _has_too_many_lines(before: bytes, data: bytes) -> bool:
    """Whether a head goes on after as many lines as it may have.

    PERF: seen in the first lines, whatever is behind them: to look for the end of a long head takes ten times as long.
    Little pieces are not worth it; they are counted when the head is whole.
    """
    if len(data) < HEADER_LINES or data.find(b"\r\n\r\n", 0, USUAL_BYTES) >= 0:
        return False
    # One more is the request's.
    lines = (before + data).lstrip(b"\r\n").split(b"\n", HEADER_LINES + 2)
    del lines[-1]
    return len(lines) > HEADER_LINES + 1 and all(len(line) > 1 and line.endswith(b"\r") for line in lines)


def _begins_a_head(before: bytes, data: bytes) -> bool:
    """Whether it is worth waiting: who speaks something else, such as TLS, would never end a head."""
    if before.lstrip(b"\r\n"):
        return True  # It was looked at when its beginning came.
    start = before + data
    if start[:1] not in _METHOD_CHARACTERS:
        start = _EMPTY_LINES.sub(b"", start, count=1)
    return start[:1] in _METHOD_CHARACTERS
