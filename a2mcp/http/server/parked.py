"""The promise of a response: what the app returns instead of one, so that no thread waits.

The app gives it back as its iterable; the channel sees the type, attaches the connection and goes on. Whoever completes
it, on whatever thread and whether before or after that, sends the response. A client that takes streams gets one when
the answer is slow or there is something to say before it: head at once, then events, the response as the last.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

from a2mcp.http import sse

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.protocol.response import Response

SLOW_S: Final = 10.0
"""A slower answer that may be a stream becomes one: clients give up on a head that stays away."""
COMMENT_S: Final = 15.0
"""A stream is never silent for longer, so that nothing on the way takes it for dead."""


class Connection(Protocol):
    """The connection that a parked response goes out on. Its methods may be called from any thread and never block."""

    def deliver(self, response: Response) -> None:
        """Send a whole response."""
        ...

    def open_stream(self) -> None:
        """Send the head of an event stream."""
        ...

    def push(self, data: bytes) -> None:
        """Send a piece of the stream."""
        ...

    def end_stream(self) -> None:
        """End the stream, and turn to the next request."""
        ...

    def unsent(self) -> int:
        """How many bytes wait for the peer to take them."""
        ...


class Parked:
    """A response that comes later; a ``Reply`` to those who complete it, a WSGI iterable to the app.

    Args:
        streams: the client takes an event stream.
        only_streams: it takes nothing else; an error that has a status of its own is JSON all the same.
    """

    __slots__ = (
        "_born",
        "_connection",
        "_early",
        "_gone",
        "_lock",
        "_on_gone",
        "_only_streams",
        "_response",
        "_sent_at",
        "_streaming",
        "_streams",
    )

    def __init__(self, *, streams: bool = False, only_streams: bool = False) -> None:
        # Reentrant, because a connection found dead while something is pushed says so at once.
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._response: Response | None = None
        self._early: list[bytes] = []
        """Events from before there was a connection to send them on: a tool may be faster than the loop."""
        self._streams = streams
        self._only_streams = only_streams
        self._streaming = False
        self._gone = False
        self._on_gone: Callable[[], None] | None = None
        self._born = self._sent_at = time.monotonic()

    # --- the channel's side ---------------------------------------------------------------------------------------

    def attach(self, connection: Connection) -> None:
        """Say where the response goes; called once, by the channel."""
        with self._lock:
            self._connection = connection
            if self._streaming:
                connection.open_stream()
            for event in self._early:
                self._push(event)
            self._early.clear()
            response = self._response
        if response is not None:
            self._deliver(connection, response)

    def gone(self) -> None:
        """The client has left before its answer."""
        with self._lock:
            if self._response is not None or self._gone:
                return
            self._gone = True
            tell = self._on_gone
        if tell is not None:
            tell()

    # --- the side of whoever answers ------------------------------------------------------------------------------

    def complete(self, response: Response) -> bool:
        """Send the response, once. Later calls change nothing and return False."""
        with self._lock:
            if self._response is not None:
                return False
            self._response = response
            connection = self._connection
        if connection is not None:
            self._deliver(connection, response)
        return True

    def begin_stream(self) -> bool:
        """Make the answer a stream if the client takes one; whether it is one now and still open."""
        with self._lock:
            if not self._streams or self._response is not None or self._gone:
                return False
            if not self._streaming:
                self._streaming = True
                self._sent_at = time.monotonic()
                if self._connection is not None:
                    self._connection.open_stream()
            return True

    def send(self, message: bytes) -> bool:
        """Send a message before the answer; False when there is no stream for it."""
        return self.emit(sse.message(message))

    def emit(self, event: bytes) -> bool:
        """Send an event, written out already; False when there is no stream for it."""
        with self._lock:
            if not self.begin_stream():
                return False
            if self._connection is None:
                self._early.append(event)
            else:
                self._push(event)
            return True

    def unsent(self) -> int:
        """How many bytes of a stream wait for its reader."""
        connection = self._connection
        return 0 if connection is None else connection.unsent()

    def tend(self, now: float) -> None:
        """Do what time asks for: turn a slow answer into a stream, keep a silent stream alive."""
        with self._lock:
            if not self._streaming:
                if now - self._born >= SLOW_S and self.begin_stream():
                    self._push(sse.COMMENT)  # Some proxies hold a head back until there is something behind it.
            elif self._response is None and now - self._sent_at >= COMMENT_S:
                self._push(sse.COMMENT)

    def when_gone(self, tell: Callable[[], None]) -> None:
        """Have it told when the client leaves before its answer; at once when it has left already."""
        with self._lock:
            self._on_gone = tell
            gone = self._gone
        if gone:
            tell()

    @property
    def done(self) -> bool:
        """Whether the response is there."""
        return self._response is not None

    def _push(self, data: bytes) -> None:
        self._sent_at = time.monotonic()
        if self._connection is not None and not self._gone:
            self._connection.push(data)

    def _deliver(self, connection: Connection, response: Response) -> None:
        if not self._streaming:
            if not self._only_streams or response.status != 200:
                connection.deliver(response)
                return
            connection.open_stream()
        connection.push(sse.message(response.body))
        connection.end_stream()

    def __iter__(self) -> NoReturn:
        raise TypeError("a parked response is attached to its connection, not iterated")
