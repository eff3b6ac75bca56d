"""The HTTP edge in this process, before a front of the test's own: for what a whole daemon cannot be made to do."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from a2mcp.auth.bearer import Bearer
from a2mcp.auth.origin import AllowedHosts
from a2mcp.http.app import make_app
from a2mcp.http.guard import Guard
from a2mcp.http.server.connections import Connections
from a2mcp.http.server.listen import bind
from a2mcp.http.server.server import Server
from a2mcp.protocol import jsonrpc
from a2mcp.protocol.response import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import msgspec

    from a2mcp.protocol.exchange import Exchange

TOKEN = "edge-token-" + "t" * 32
SESSION = "the-session"


class Front:
    """A front without sessions. ``tools/call`` of ``now`` answers at once, of ``hold`` when released, of ``fail`` raises."""

    def __init__(self) -> None:
        self.held: dict[bytes, Exchange] = {}
        self.called: list[tuple[bytes, int]] = []
        self.holding = threading.Condition()
        self.fault: Callable[[], BaseException] = lambda: RuntimeError("secret /etc/passwd")

    def open_session(self, exchange: Exchange, encoded: bytes) -> None:
        exchange.reply.complete(
            Response(200, jsonrpc.result(exchange.request_id, encoded), (("mcp-session-id", SESSION),))
        )

    def end_session(self, exchange: Exchange) -> None:
        exchange.reply.complete(Response(204))

    def answer(self, exchange: Exchange, response: Response) -> None:
        exchange.reply.complete(response)

    def call(self, exchange: Exchange, tool: str, arguments: msgspec.Raw) -> None:
        self.called.append((exchange.request_id, len(bytes(arguments))))
        if tool == "fail":
            raise self.fault()
        if tool == "hold":
            with self.holding:
                self.held[exchange.request_id] = exchange
                self.holding.notify_all()
            return
        self._finish(exchange)

    def catalog(self) -> bytes:
        raise self.fault()

    def wait_for(self, request_id: bytes) -> None:
        """Wait until this call is held."""
        with self.holding:
            assert self.holding.wait_for(lambda: request_id in self.held, timeout=10), f"{request_id!r} never came"

    def release(self, request_id: bytes) -> bool:
        """Answer a held call; False when it was answered already."""
        return self._finish(self.held.pop(request_id))

    @staticmethod
    def _finish(exchange: Exchange) -> bool:
        return exchange.reply.complete(Response(200, jsonrpc.result(exchange.request_id, b"{}")))


class Edge:
    """A running server and what it stands on."""

    def __init__(self, **options: Any) -> None:
        self.front = Front()
        self.reports: list[str] = []
        self.bearer = Bearer(TOKEN, report=self.reports.append)
        body_bytes = options.pop("body_bytes", 1 << 20)
        sock, _ = bind("127.0.0.1", 0)
        self.port = int(sock.getsockname()[1])
        self.server = Server(
            options.pop("app", None) or make_app(self.front),
            sock,
            guard=Guard(self.bearer, AllowedHosts("127.0.0.1"), body_bytes=body_bytes),
            connections=Connections(options.pop("connections", 1000), options.pop("strangers", 1000)),
            **options,
        )
        self.thread = threading.Thread(target=self.server.run, name="Edge")

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self.server.active_channels)


@contextlib.contextmanager
def edge(**options: Any) -> Iterator[Edge]:
    """A server for the length of a block; its loop must still run at the end of it."""
    made = Edge(**options)
    made.thread.start()
    try:
        yield made
        assert made.thread.is_alive(), "the loop ended"
    finally:
        made.server.finish()
        made.thread.join(10)
