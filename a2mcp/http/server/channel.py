"""One connection: requests in order in, responses in order out, and the deadlines of a peer that does neither.

The loop thread reads, closes and runs the app; any thread may deliver a parked response. Waitress's ``requests_lock``
guards the queue of requests and ``outbuf_lock`` the bytes to send, as in the class this one extends.
"""

from __future__ import annotations

import errno
import socket
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from waitress.channel import HTTPChannel

from a2mcp.auth.origin import is_loopback
from a2mcp.errors import RequestError, RequestTimeout
from a2mcp.http.server import responses, task
from a2mcp.http.server.answering import Answering
from a2mcp.http.server.outbox import Outbox
from a2mcp.http.server.parked import Parked
from a2mcp.http.server.parser import RequestParser
from a2mcp.protocol.refusal import response_for
from a2mcp.protocol.response import FilePart, Response

if TYPE_CHECKING:
    from a2mcp.http.server.server import Server

LOOKAHEAD: Final = 4
"""Requests read beyond the one being answered. Above 0, so that a peer that leaves is seen while one is parked."""

HEADER_DEADLINE_S: Final = 20.0
BODY_GRACE_S: Final = 20.0
BODY_BYTES_PER_S: Final = 1024
IDLE_S: Final = 120.0
SEND_STALL_S: Final = 60.0
SPARED_S: Final = 0.5
STALLED_S: Final = 5.0
"""How long a connection may do nothing, and a transfer stand still, when all connections are taken."""
HALF_CLOSE_GRACE_S: Final = 2.0
"""How long a peer that ended its side still gets its answer: enough for ``nc -N``, short for one that has gone."""
LINGER_S: Final = 2.0
LINGER_BYTES: Final = 1 << 20
TURN_BYTES: Final = 1 << 20
"""Sent to all peers in one round of the loop."""
STRANGER_BYTES: Final = 4096
"""Read at a time from who has not shown the token and may yet do so."""
STREAM_BYTES: Final = 4 << 20
"""Unsent bytes of a stream at which its reader is taken for one that does not read, and dropped."""
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

_GONE: Final = frozenset(
    {errno.ECONNRESET, errno.ENOTCONN, errno.ESHUTDOWN, errno.ECONNABORTED, errno.EPIPE, errno.EBADF}
)


class Channel(HTTPChannel):  # type: ignore[misc]  # Waitress has no types.
    """One connection of ``Server``."""

    server: Server
    requests: list[RequestParser]
    request: RequestParser | None
    sent_continue: bool

    def __init__(self, server: Server, sock: socket.socket, addr: Any, adj: Any, map: Any = None) -> None:  # noqa: A002
        super().__init__(server, sock, addr, adj, map=map)
        self.outbox = Outbox()
        self.parser_class = partial(
            RequestParser,
            guard=server.guard,
            cache=server.heads,
            sinks=server.sinks,
            shown_token=self._shown_token,
            # A Unix socket has no address and is here.
            from_here=not addr or is_loopback(str(addr[0])),
        )
        self.active_at = self.began_at = time.monotonic()
        self.peer_ended_at = 0.0
        self.lingering_since = 0.0
        self._lingered = 0
        self._last_request = False
        self._unread = False
        self.known = False
        """Whether a request has shown the token."""
        self._unparsed = b""
        """What came and waits: for room in the queue, since a request in it takes many times the memory of its bytes,
        or for others to have their turn."""
        self._held = False
        """Whether the next request waits for the answer before it: a peer that does not read piles nothing up."""

    # --- reading: the loop thread ---------------------------------------------------------------------------------

    def readable(self) -> bool:
        """Whether to watch for bytes."""
        if self.lingering_since:
            return True
        return not (
            self.peer_ended_at
            or self.will_close
            or self.close_when_flushed
            or self._last_request
            or len(self.requests) > LOOKAHEAD
            or self._unparsed
            or self.outbox.size
            or (self.request is not None and self.request.sink is not None and self.request.sink.full)
        )

    def recv(self, buffer_size: int) -> bytes:
        """Read; an end of stream may be a peer that has sent all and still listens."""
        try:
            data: bytes = self.socket.recv(buffer_size)
        except BlockingIOError:
            return b""
        except OSError as cause:
            if cause.errno not in _GONE:
                raise
            self.handle_close()
            return b""
        if not data:
            self._peer_ended()
        return data

    def handle_read(self) -> None:
        """Read once, and start what became whole."""
        # PERF: a refusal, which is most of what strangers get, takes no more than the beginning.
        data = self.recv(self.adj.recv_bytes if self.known or self.lingering_since else STRANGER_BYTES)
        if not data:
            return
        self.active_at = time.monotonic()
        if self.lingering_since:
            self._lingered += len(data)
            if self._lingered > LINGER_BYTES:
                self.handle_close()
            return
        if self.request is None:
            self.began_at = self.active_at
        self.received(data)

    def received(self, data: bytes) -> bool:
        """Parse what came, as far as there is room in the queue and not for long; the rest waits.

        Waitress's own parses all of it, which can be hundreds of requests or ten thousand chunks.
        """
        with self.requests_lock:
            if self.will_close or self.close_when_flushed:
                return False
            crumbs = False
            while data and len(self.requests) <= LOOKAHEAD and not crumbs:
                most = len(data) if self.request is None else self.request.at_once(len(data))
                crumbs = most < len(data)
                data = data[self._parse(data[:most]) :]
            self._unparsed = data
        if crumbs:
            self.server.look_again(self)
        sink = None if self.request is None else self.request.sink
        if sink is not None and sink.full:
            sink.when_room(partial(self.server.look_again, self))
        return True

    def _parse(self, data: bytes) -> int:
        """Give bytes to the request in the making, and queue it when it is whole; how many of them belonged to it."""
        request = self.request = self.request or self.parser_class(self.adj)
        taken = request.received(data)
        if request.expect_continue and request.headers_finished and not self.requests and not self.sent_continue:
            self.send_continue()
        if request.completed:
            self.sent_continue = False
            self.request = None
            if not request.empty:
                self.requests.append(request)
                if len(self.requests) == 1:
                    self.server.add_task(self)
        return taken

    def catch_up(self) -> None:
        """Parse on, when what waits has room. Called in the loop."""
        if self._unparsed and self._has_caught_up():
            if self.request is None:
                self.began_at = time.monotonic()
            self.received(self._unparsed)

    def _has_caught_up(self) -> bool:
        """Whether the queue is so short that it is worth while to parse on."""
        return len(self.requests) <= 1

    def _shown_token(self) -> None:
        if not self.known:
            self.known = True
            self.server.connections.known(self)

    def in_use(self, now: float) -> bool:
        """Whether somebody waits for what is done on this connection, or it still moves."""
        if self.requests:
            return True
        idle = self.request is None and not self.outbox.size
        return now - self.active_at < (SPARED_S if idle else STALLED_S)

    def _peer_ended(self) -> None:
        with self.requests_lock:
            awaited = bool(self.requests or self.outbox.size)
            if awaited:
                self.peer_ended_at = time.monotonic()
        if not awaited:
            self.handle_close()

    def send_continue(self) -> None:
        """Say that the body may come. Called under ``requests_lock``, from any thread."""
        if self.request is not None:
            self.request.expect_continue = False
            self.sent_continue = True
            self._send(CONTINUE)

    def next_body_bytes(self) -> int:
        """The size of the body of the request at the head of the queue, to judge how long the app takes with it."""
        with self.requests_lock:
            if not self.requests:
                return 0
            request = self.requests[0]
            if request.sink is not None:
                return sys.maxsize  # However small, it is yet to be written to its place.
            return len(request.body_rcv) if request.body_rcv is not None else 0

    # --- answering ------------------------------------------------------------------------------------------------

    def service(self) -> None:
        """Answer the request at the head of the queue, now or when its parked response is completed."""
        with self.requests_lock:
            if not self.requests:
                return
            request = self.requests[0]
        answer = task.run(self.server.application, request)
        if isinstance(answer, Parked):
            request.parked = answer
            answer.attach(Answering(self, request))
            if not self.connected:
                answer.gone()  # It closed while another thread ran the app, and found nobody to tell.
        else:
            self.deliver(request, answer)

    def deliver(self, request: RequestParser, response: Response) -> None:
        """Send the response of the request at the head of the queue, then turn to the next. Called from any thread."""
        close = bool(request.connection_close or request.error is not None or self.server.draining)
        head_only = request.command == "HEAD"
        data = responses.encode(response, close=close, version=request.version, head_only=head_only)
        self._unread = close and request.error is not None
        if head_only:
            response.close()
        self._end_request(request, data, close=close, parts=() if head_only else response.parts)

    def open_stream(self, request: RequestParser) -> None:
        """Send the head of an event stream as the response of the request at the head of the queue."""
        # A client of HTTP/1.0 knows no chunks: its stream ends where the connection does.
        close = self.closes_after(request)
        self._stream(responses.stream_head(chunked=request.version == "1.1", close=close))

    def push(self, request: RequestParser, data: bytes) -> None:
        """Send a piece of the stream."""
        self._stream(responses.chunk(data) if request.version == "1.1" else data)

    def end_stream(self, request: RequestParser) -> None:
        """End the stream, then turn to the next request."""
        close = bool(request.connection_close or request.version != "1.1" or self.server.draining)
        self._end_request(request, responses.LAST_CHUNK if request.version == "1.1" else b"", close=close)

    def relay(self, data: bytes) -> bool:
        """Send a piece of a response as it is, once there is room; False when the peer has gone. Blocks its thread."""
        with self.outbuf_lock:
            self.outbuf_lock.wait_for(lambda: not self.connected or self.outbox.size < TURN_BYTES)
            if not self.connected:
                return False
        if not self._send(data):
            self.server.look_again(self)
        return True

    def closes_after(self, request: RequestParser) -> bool:
        """Whether the connection ends with the response of this request."""
        return bool(request.connection_close or self.server.draining)

    def end_relay(self, request: RequestParser, data: bytes, *, close: bool) -> None:
        """Send the last piece, then turn to the next request."""
        self._end_request(request, data, close=close)

    def _stream(self, data: bytes) -> None:
        if self.outbox.size > STREAM_BYTES:
            self.abandon()
        elif not self._send(data):
            self.server.look_again(self)

    def _end_request(
        self, request: RequestParser, data: bytes, *, close: bool, parts: tuple[bytes | FilePart, ...] = ()
    ) -> None:
        if close:
            self._last_request = True
        flushed = self._send(data, parts)
        request.close()
        # PERF: the promise knows the request. Without this the answer stays in memory until cycles are collected.
        request.parked = None
        with self.requests_lock:
            self._turn_to_next(last=close)
            # The loop stopped reading, or parsing, when the queue was longer than this.
            room_again = self._has_caught_up() if self._unparsed else len(self.requests) == LOOKAHEAD
        # While its answer was awaited, the peer may not have been read from: what it sends next begins now.
        self.active_at = self.began_at = time.monotonic()
        if close or not flushed or self.peer_ended_at or room_again:
            self.server.look_again(self)

    def _turn_to_next(self, *, last: bool) -> None:
        # PERF: the peer may have the response, and the loop its next request, before this: whoever then finds the queue
        # not empty starts it, and that is here.
        if self.requests:
            self.requests.pop(0)
        if last:
            self.requests.clear()
            self._unparsed = b""
            self.close_when_flushed = True
        elif self.requests:
            self._held = self.outbox.size > 0
            if not self._held:
                self.server.go_on(self)
        elif self.peer_ended_at:
            self.close_when_flushed = True
        elif self.request is not None and self.request.expect_continue and self.request.headers_finished:
            self.send_continue()

    def _send(self, data: bytes, parts: tuple[bytes | FilePart, ...] = ()) -> bool:
        """Send what the socket takes at once and leave the rest to the loop; whether nothing is left."""
        with self.outbuf_lock:
            if not self.connected:
                Response(0, parts=parts).close()
                return True
            sent = 0
            if not self.outbox.size:
                sent = self._send_now(data)
                if sent == len(data) and not parts:
                    return True
                self.active_at = time.monotonic()
            self.outbox.add(data[sent:])
            for part in parts:
                self.outbox.add(part)
            return False

    def _send_now(self, data: bytes) -> int:
        try:
            sent: int = self.socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            # Only the loop closes: another thread must not take the descriptor away under it.
            self.abandon()
            return len(data)
        return sent

    def handle_close(self) -> None:
        """Close, and say so to whoever prepares an answer for this connection."""
        super().handle_close()
        with self.outbuf_lock:
            self.outbox.close()
            self.outbuf_lock.notify_all()
        self.server.left(self)
        if self.request is not None:
            self.request.close()  # Half an upload leaves nothing behind.
        with self.requests_lock:
            left = [request.parked for request in self.requests if request.parked is not None]
        for parked in left:
            parked.gone()

    # --- ending ---------------------------------------------------------------------------------------------------

    def handle_write(self) -> None:
        """Send what is left, then close if that was all."""
        with self.outbuf_lock:
            try:
                if self.outbox.send(self.socket, self.server.turn_bytes):
                    self.active_at = time.monotonic()
                    self.outbuf_lock.notify_all()
            except OSError:
                self.will_close = True
        if not self.outbox.size:
            self._go_on()
            if self.close_when_flushed:
                self.close_when_flushed = False
                self._finish()
        if self.will_close:
            self.handle_close()

    def _go_on(self) -> None:
        """Start the request that was held back until the answer before it was on its way."""
        with self.requests_lock:
            if self._held:
                self._held = False
                self.server.go_on(self)

    def abandon(self) -> None:
        """Close without an answer, because there cannot be one. Called from any thread."""
        self.will_close = True
        self.server.look_again(self)

    def writable(self) -> bool:
        """Whether there is something to send or to end."""
        return bool(self.outbox.size or self.will_close or self.close_when_flushed)

    def _finish(self) -> None:
        """Close; but let a peer that is still sending read its refusal first, which a reset would destroy."""
        if not self._unread or self.peer_ended_at:
            self.will_close = True
            return
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.will_close = True
            return
        self.lingering_since = time.monotonic()

    def overdue(self, now: float) -> bool:
        """Whether this connection has used up one of its deadlines. Called by the server once a second."""
        if self.lingering_since:
            return now - self.lingering_since > LINGER_S
        if self.peer_ended_at:
            return now - self.peer_ended_at > HALF_CLOSE_GRACE_S
        if self.outbox.size:
            return self.outbox.overdue(now - self.active_at, SEND_STALL_S)
        if self.requests:
            return False
        if self.request is not None:
            return self._too_slow(self.request, now - self.began_at)
        return now - self.active_at > IDLE_S

    def _too_slow(self, request: RequestParser, elapsed: float) -> bool:
        sink = request.sink
        if sink is not None and sink.overdue(time.monotonic() - self.active_at):
            self._refuse(sink.fault or RequestTimeout("the body stopped coming"))
            return bool(self.will_close)
        if not request.headers_finished:
            late = elapsed > HEADER_DEADLINE_S
        else:
            late = elapsed > BODY_GRACE_S and request.body_bytes_received < elapsed * BODY_BYTES_PER_S
        if not late:
            return False
        self._refuse(RequestTimeout("the request came too slowly"))
        return bool(self.will_close)

    def _refuse(self, error: RequestError) -> None:
        """Answer a request that is not whole, and end the connection."""
        self._last_request = self._unread = True
        self._send(responses.encode(response_for(error), close=True, version="1.1"))
        self.close_when_flushed = True
        if self.request is not None:
            self.request.close()
        self.request = None
        self.server.look_again(self)
