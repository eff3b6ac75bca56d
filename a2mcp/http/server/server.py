"""The loop: one thread that accepts, reads, runs the app and sends what could not be sent at once.

Owns every connection of one listening socket. Knows nothing of JSON-RPC: ``guard`` judges heads, the app answers.
"""

from __future__ import annotations

import errno
import logging
import queue
import socket
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer

from a2mcp.host import affinity
from a2mcp.http.server.channel import LOOKAHEAD, TURN_BYTES, Channel
from a2mcp.http.server.heads import HeadCache
from a2mcp.http.server.poller import READ, WRITE, Poller, SocketMap
from a2mcp.http.server.sinks import Sinks, no_sinks

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.http.guard import Judge

BACKLOG: Final = 1024
ACCEPTS_AT_ONCE: Final = 64
TICK_S: Final = 1.0
DRAIN_TICK_S: Final = 0.02
"""While draining: how soon after the last answer the process may end."""
HEADER_BYTES: Final = 32 * 1024
INLINE_BODY_BYTES: Final = 64 * 1024
"""A larger body is decoded on another thread: decoding holds up every connection."""
LEAST_TURN_BYTES: Final = 128 * 1024
RECV_BYTES: Final = 64 * 1024
"""Read at a time: enough that an upload is not read in crumbs, and little enough that others get their turn."""

logger = logging.getLogger("a2mcp.http")


class Server(TcpWSGIServer):  # type: ignore[misc]  # Waitress has no types.
    """Serves one WSGI app on one listening socket until told to stop.

    Args:
        app: the WSGI app; it must not block.
        sock: a bound socket, not yet listening.
        guard: what judges the head of each request, and the size of its body.
        connections: how many may be open; beyond it, accepting pauses.
        sinks: where large bodies go.
        on_tick: called once a second in the loop.
    """

    channel_class = Channel

    def __init__(  # noqa: PLR0913  # The last three have names at the call.
        self,
        app: Any,
        sock: socket.socket,
        *,
        guard: Judge,
        connections: int,
        sinks: Sinks = no_sinks,
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._poller = Poller()
        self._dirty: deque[Channel] = deque()
        self._ready: deque[Channel] = deque()
        self._connections = connections
        self._accept_again_at = 0.0
        self._next_tick = 0.0
        self._on_tick = on_tick
        self._bodies: queue.SimpleQueue[Channel] | None = None
        self._running = True
        # Reentrant: a signal handler may come while its own thread holds it.
        self._waking = threading.RLock()
        self._ended = False
        self.turn_bytes = TURN_BYTES
        """Sent to one peer before the others get their turn: less, the more of them there are."""
        self.draining = False
        self.guard = guard
        self.sinks = sinks
        adj = Adjustments(
            ident=None,
            threads=1,
            backlog=BACKLOG,
            channel_request_lookahead=LOOKAHEAD,
            max_request_header_size=HEADER_BYTES,
            max_request_body_size=sys.maxsize,
            recv_bytes=RECV_BYTES,
            clear_untrusted_proxy_headers=False,
            log_socket_errors=False,
        )
        self.heads = HeadCache(adj)
        super().__init__(
            app,
            map=SocketMap(self._poller),
            _sock=sock,
            dispatcher=self,
            adj=adj,
            bind_socket=False,
            sockinfo=(sock.family, sock.type, sock.proto, sock.getsockname()),
        )
        self._thread = threading.get_ident()

    # --- the loop -------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until ``finish``; everything but ``deliver`` of a channel happens in here."""
        self._thread = threading.get_ident()
        while self._running:
            ready = list(self._poller.wait(DRAIN_TICK_S if self.draining else TICK_S))
            self.turn_bytes = max(LEAST_TURN_BYTES, TURN_BYTES // max(1, len(ready)))
            for fd, event in ready:
                dispatcher = self._map.get(fd)
                if dispatcher is None:
                    continue
                wasyncore.readwrite(dispatcher, event)
                self._serve_ready()
                self._settle(dispatcher)
            self._serve_ready()
            self._settle_dirty()
            self._tick()
        self._close_all()

    def add_task(self, channel: Channel) -> None:
        """Start the request at the head of a channel's queue. Called by the channel, from any thread."""
        self._ready.append(channel)
        if threading.get_ident() != self._thread:
            self.pull_trigger()

    def look_again(self, channel: Channel) -> None:
        """Ask a channel anew what it waits for. Called from any thread."""
        self._dirty.append(channel)
        if threading.get_ident() != self._thread:
            self.pull_trigger()

    def _serve_ready(self) -> None:
        while self._ready:
            channel = self._ready.popleft()
            if channel.next_body_bytes() > INLINE_BODY_BYTES:
                self._decode_elsewhere(channel)
            else:
                self._serve(channel)

    @staticmethod
    def _serve(channel: Channel) -> None:
        try:
            channel.service()
        except Exception:  # The rim: one request must not end the loop, nor the thread of the big bodies.
            logger.exception("[a2mcp] internal error:")
            channel.abandon()

    def _decode_elsewhere(self, channel: Channel) -> None:
        if self._bodies is None:
            bodies: queue.SimpleQueue[Channel] = queue.SimpleQueue()
            try:
                threading.Thread(target=self._serve_bodies, args=(bodies,), name="Bodies", daemon=True).start()
            except RuntimeError:  # The machine has no thread left: better slow for everybody than not at all.
                self._serve(channel)
                return
            self._bodies = bodies
        self._bodies.put(channel)

    def _serve_bodies(self, bodies: queue.SimpleQueue[Channel]) -> None:
        affinity.spread()
        while True:
            self._serve(bodies.get())

    def _settle(self, dispatcher: Any) -> None:
        fd = dispatcher._fileno  # noqa: SLF001  # Waitress's name for it; None once it is closed.
        if fd is not None:
            interest = (READ if dispatcher.readable() else 0) | (WRITE if dispatcher.writable() else 0)
            self._poller.want(fd, interest)

    def _settle_dirty(self) -> None:
        while self._dirty:
            channel = self._dirty.popleft()
            if channel.connected and channel.writable():
                channel.handle_write()
            self._settle(channel)

    # --- accepting ------------------------------------------------------------------------------------------------

    def readable(self) -> bool:
        """Whether to watch for new connections."""
        return bool(self.accepting and not self._accept_again_at and len(self.active_channels) < self._connections)

    def handle_accept(self) -> None:
        """Take the connections that wait, some at a time so that those there already are served too."""
        for _ in range(ACCEPTS_AT_ONCE):
            if not self.readable():
                return
            try:
                conn, addr = self.socket.accept()
            except BlockingIOError:
                return
            except OSError as cause:
                self._accept_failed(cause)
                return
            try:
                self.set_socket_options(conn)
                Channel(self, conn, addr, self.adj, map=self._map)
            except OSError:
                conn.close()  # The peer has left already.

    def one_less(self) -> None:
        """A connection has ended: at the cap, the next one may come. Called in the loop."""
        if self.accepting:
            self._settle(self)

    def _accept_failed(self, cause: OSError) -> None:
        if cause.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            # Watching on would spin: the connection that cannot be taken stays ready.
            self._accept_again_at = time.monotonic() + TICK_S
            logger.warning("[a2mcp] cannot accept connections for now: %s", cause.strerror)

    def maintenance(self, now: float) -> None:
        """Close what is overdue. ``now`` is monotonic: a jump of the wall clock closes nothing."""
        for channel in list(self.active_channels.values()):
            if channel.overdue(now):
                channel.handle_close()

    def _tick(self) -> None:
        now = time.monotonic()
        if now < self._next_tick:
            return
        self._next_tick = now + (DRAIN_TICK_S if self.draining else TICK_S)
        if self._accept_again_at and now >= self._accept_again_at:
            self._accept_again_at = 0.0
        self.maintenance(now)
        if self.accepting:
            self._settle(self)
        try:
            self._on_tick()
        except Exception:  # The rim: what goes wrong once a second must not end the loop.
            logger.exception("[a2mcp] internal error:")

    # --- ending ---------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Take no new connections, and close those that wait for nothing. Called in the loop."""
        if self.draining:
            return
        self.draining = True
        self._next_tick = 0.0  # The last tick set it a second away; from now on they come more often.
        self.accepting = False
        self.del_channel()
        self.socket.close()
        for channel in list(self.active_channels.values()):
            if not channel.requests and channel.request is None and not channel.outbox.size:
                channel.handle_close()

    @property
    def quiet(self) -> bool:
        """Whether no connection waits for an answer or has bytes to be sent."""
        return not any(channel.requests or channel.outbox.size for channel in self.active_channels.values())

    def pull_trigger(self) -> None:
        """Wake the loop, if it is still there. Called from any thread or signal handler.

        Once the loop has ended its pipe's descriptor may be another file, into which nothing must be written.
        """
        with self._waking:
            if not self._ended:
                super().pull_trigger()

    def finish(self) -> None:
        """End the loop. Called from any thread or signal handler."""
        self._running = False
        self.pull_trigger()

    def wake(self) -> None:
        """Make the loop go round once more now. Called from any thread or signal handler."""
        self._next_tick = 0.0
        self.pull_trigger()

    def _close_all(self) -> None:
        for channel in list(self.active_channels.values()):
            channel.handle_close()
        with self._waking:
            self._ended = True
            self.trigger.close()
        self.socket.close()
        self._poller.close()
