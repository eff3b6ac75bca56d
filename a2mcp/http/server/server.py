"""The loop: one thread that accepts, reads, runs the app and sends what could not be sent at once.

Owns every connection of one listening socket. Knows nothing of JSON-RPC: ``guard`` judges heads, the app answers.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer

from a2mcp.http.server.accepting import Pause, has_left
from a2mcp.http.server.bodies import Bodies
from a2mcp.http.server.channel import LOOKAHEAD, TURN_BYTES, Channel
from a2mcp.http.server.connections import LOOK_AGAIN_S, Connections
from a2mcp.http.server.heads import HeadCache
from a2mcp.http.server.poller import READ, WRITE, Poller, SocketMap
from a2mcp.http.server.precedence import Precedence
from a2mcp.http.server.scheduler import Scheduler
from a2mcp.http.server.sinks import Sinks, no_sinks
from a2mcp.http.server.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.http.guard import Judge

BACKLOG: Final = 4096
"""Connections that wait to be taken. One that finds no place among them is tried again after a second."""
LOOKED_AT: Final = 512
"""Connections that are looked at together, most of which may have been left already."""
TICK_S: Final = 1.0
DRAIN_TICK_S: Final = 0.02
"""While draining: how soon after the last answer the process may end."""
HEADER_BYTES: Final = 32 * 1024
LEAST_TURN_BYTES: Final = 128 * 1024
RECV_BYTES: Final = 64 * 1024
"""Read at a time: enough that an upload is not read in crumbs, and little enough that others get their turn."""

# A trigger that got no descriptor would otherwise complain of itself when it is let go of.
wasyncore.file_wrapper.fd = -1

logger = logging.getLogger("a2mcp.http")


class Server(TcpWSGIServer):  # type: ignore[misc]  # Waitress has no types.
    """Serves one WSGI app on one listening socket until told to stop.

    Args:
        app: the WSGI app; it must not block.
        sock: a bound socket, not yet listening.
        guard: what judges the head of each request, and the size of its body.
        connections: how many connections there may be, and whose.
        sinks: where large bodies go.
        on_tick: called once a second in the loop.
    """

    channel_class = Channel

    def __init__(  # noqa: PLR0913  # All but the first two have names at the call.
        self,
        app: Any,
        sock: socket.socket,
        *,
        guard: Judge,
        connections: Connections,
        sinks: Sinks = no_sinks,
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._poller = Poller()
        self.connections = connections
        self._throttle = Throttle()
        self._pause = Pause(self._throttle)
        self._next_tick = 0.0
        self._on_tick = on_tick
        self._scheduler = Scheduler(Bodies(self._serve).serve)
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
        self._precedence = Precedence(
            self._map, self._poller, listener=self, look_after=self._look_after, meanwhile=self._go_on
        )
        self._thread = threading.get_ident()

    # --- the loop -------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until ``finish``; everything but ``deliver`` of a channel happens in here."""
        self._thread = threading.get_ident()
        while self._running:
            ready = self._poller.wait(self._patience())
            self.turn_bytes = max(LEAST_TURN_BYTES, TURN_BYTES // max(1, len(ready)))
            self._precedence.take(ready)
            self._go_on()
            for channel in self.connections.give_way():
                channel.handle_close()
            self._tick()
        self._close_all()

    def _look_after(self, dispatcher: Any, event: int) -> None:
        wasyncore.readwrite(dispatcher, event)
        self._scheduler.serve_ready()
        self._settle(dispatcher)

    def _go_on(self) -> None:
        """Do what callers wait for beside what they have just sent."""
        self._scheduler.serve_ready()
        self._scheduler.serve_further()
        self._settle_changed()

    def _patience(self) -> float:
        if self._scheduler.busy:
            return 0.0
        if self.draining:
            return DRAIN_TICK_S
        return LOOK_AGAIN_S if self.connections.full else TICK_S

    def add_task(self, channel: Channel) -> None:
        """Start the request at the head of a channel's queue. Called by the channel, from any thread."""
        self._put(self._scheduler.ready, channel)

    def go_on(self, channel: Channel) -> None:
        """Start the next request of a channel that was just answered one. Called by the channel, from any thread."""
        self._put(self._scheduler.further, channel)

    def look_again(self, channel: Channel) -> None:
        """Ask a channel anew what it waits for. Called from any thread."""
        self._put(self._scheduler.changed, channel)

    def _put(self, waiting: deque[Channel], channel: Channel) -> None:
        waiting.append(channel)
        if threading.get_ident() != self._thread:
            self.pull_trigger()

    @staticmethod
    def _serve(channel: Channel) -> None:
        try:
            channel.service()
        except Exception:  # The rim: one request must not end the loop, nor the thread of the big bodies.
            logger.exception("[a2mcp] internal error:")
            channel.abandon()

    def _settle(self, dispatcher: Any) -> None:
        fd = dispatcher._fileno  # noqa: SLF001  # Waitress's name for it; None once it is closed.
        if fd is not None:
            interest = (READ if dispatcher.readable() else 0) | (WRITE if dispatcher.writable() else 0)
            self._poller.want(fd, interest)

    def _settle_changed(self) -> None:
        for channel in self._scheduler.take_changed():
            if channel.connected:
                channel.catch_up()
                if channel.writable():
                    channel.handle_write()
            self._settle(channel)

    # --- accepting ------------------------------------------------------------------------------------------------

    def readable(self) -> bool:
        """Whether to watch for new connections."""
        return bool(self.accepting and self._pause.over and not self.connections.full)

    def handle_accept(self) -> None:
        """Take the connections that wait, some at a time so that those there already are served too."""
        came = 0
        for _ in range(LOOKED_AT):
            if came == self.connections.at_once or not self.readable():
                return
            try:
                conn, addr = self.socket.accept()
            except BlockingIOError:
                return
            except OSError as cause:
                self._pause.begin(cause)
                return
            if has_left(conn):
                conn.close()
                continue
            came += 1
            try:
                self.set_socket_options(conn)
                self._take_in(Channel(self, conn, addr, self.adj, map=self._map))
            except OSError:
                conn.close()  # The peer has left already.

    def _take_in(self, channel: Channel) -> None:
        leaving = self.connections.came(channel)
        if leaving is not None:
            self._throttle.warn("too many connections have not shown the token; the oldest of them are closed")
            leaving.handle_close()

    def left(self, channel: Channel) -> None:
        """Take note that a connection has ended: at the cap, the next one may come. Called in the loop."""
        self.connections.left(channel)
        if self.accepting:
            self._settle(self)

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
