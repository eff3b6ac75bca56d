"""A request under ``/xfer/`` that another program answers: its response is passed on while it comes.

The proxy blocks, so each exchange has a thread, and there are only so many. The loop is not held: the thread waits for
room on the client's connection, and the client's leaving ends the exchange.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import unquote

from a2mcp.errors import Busy, FileRefusal
from a2mcp.http.server.parked import Parked
from a2mcp.http.server.responses import LAST_CHUNK, chunk
from a2mcp.protocol.refusal import response_for
from a2mcp.xfer.proxy import Exchange, Request, Truncated, Unreachable
from a2mcp.xfer.share import PREFIX
from a2mcp.xfer.transfers import UPLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2mcp.http.server.parked import Connection
    from a2mcp.protocol.response import Response
    from a2mcp.xfer.proxy import Head, Upstream
    from a2mcp.xfer.transfers import Transfers

MOST: Final = 32
"""Exchanges at one time. One more is answered 503."""
GONE: Final = "the file server behind this path does not answer"

logger = logging.getLogger("a2mcp.xfer")


class RelayConnection(Protocol):
    """The client's connection, as far as a response is passed on to it by a thread that may wait."""

    @property
    def version(self) -> str:
        """Of HTTP."""
        ...

    @property
    def closes(self) -> bool:
        """Whether it ends with this response."""
        ...

    def deliver(self, response: Response) -> None:
        """Send a whole response."""
        ...

    def relay(self, data: bytes) -> bool:
        """Send a piece once there is room; False when the client has gone."""
        ...

    def end_relay(self, data: bytes, *, close: bool) -> None:
        """Send the last piece."""
        ...

    def abandon(self) -> None:
        """Close it, so that what was sent is seen not to be whole."""
        ...


class Relays:
    """Passes requests on, so many at a time."""

    def __init__(self, most: int = MOST) -> None:
        self._slots = threading.BoundedSemaphore(most)

    def start(self, environ: dict[str, Any], upstream: Upstream, transfers: Transfers, *, stall_s: float) -> Parked:
        """Pass a request on; the promise of its response.

        Raises:
            Busy: as many as may be are under way.
        """
        if not self._slots.acquire(blocking=False):
            raise Busy("too many files are being transferred.", hint="Try again in a moment.")
        return _Relay(_request_of(environ), Exchange(upstream, stall_s=stall_s), transfers, self._slots)


class _Relay(Parked):
    """One exchange, and the connection that it is for."""

    __slots__ = ("_exchange", "_request", "_slots", "_transfer", "_transfers")

    def __init__(
        self, request: Request, exchange: Exchange, transfers: Transfers, slots: threading.BoundedSemaphore
    ) -> None:
        super().__init__()
        self._request = request
        self._exchange = exchange
        self._transfers = transfers
        self._slots = slots
        uploads = request.method in UPLOADS
        name = unquote(request.target.partition("?")[0].removeprefix(PREFIX).strip("/"), errors="replace")
        total = request.length if uploads else None
        self._transfer = transfers.begin(name, "upload" if uploads else "download", total)

    def attach(self, connection: Connection) -> None:
        """Begin, in a thread of its own."""
        to = cast("RelayConnection", connection)
        try:
            threading.Thread(target=self._run, args=(to,), name="Relay", daemon=True).start()
        except RuntimeError:  # The machine has no thread left.
            self._over()
            to.deliver(response_for(Busy("the machine is busy.", hint="Try again in a moment.")))

    def gone(self) -> None:
        """The client has left: end the exchange."""
        self._exchange.abort()

    def _run(self, to: RelayConnection) -> None:
        try:
            self._pass_on(to)
        except Unreachable as cause:
            # The port is nobody's business but the operator's.
            logger.warning("[a2mcp] file server on port %d: %s", self._exchange.port, cause)
            to.deliver(response_for(FileRefusal(502, GONE)))
        except Truncated as cause:
            logger.warning("[a2mcp] file server on port %d: %s", self._exchange.port, cause)
            to.abandon()
        except BaseException:
            to.abandon()
            raise
        finally:
            self._over()

    def _over(self) -> None:
        self._exchange.close()
        self._slots.release()
        self._transfers.end(self._transfer)

    def _pass_on(self, to: RelayConnection) -> None:
        head = self._exchange.ask(self._request)
        if self._transfer.direction == "upload":
            self._transfer.moved = self._request.length
        else:
            self._transfer.total = head.length if head.has_body else 0
        chunked = head.has_body and head.length is None and to.version != "1.0"
        close = to.closes or (head.has_body and head.length is None and not chunked)
        going = to.relay(_written(head, version=to.version, chunked=chunked, close=close))
        for piece in self._exchange.pieces():
            if not going:
                return
            if self._transfer.stopped:
                raise Truncated("the operator has ended this transfer")
            going = to.relay(chunk(piece) if chunked else piece)
            if self._transfer.direction == "download":
                self._transfer.moved += len(piece)
        to.end_relay(LAST_CHUNK if chunked else b"", close=close)


def _written(head: Head, *, version: str, chunked: bool, close: bool) -> bytes:
    lines = [f"HTTP/1.1 {head.status} {head.reason}", *(f"{name}: {value}" for name, value in head.headers)]
    if chunked:
        lines.append("Transfer-Encoding: chunked")
    elif head.length is not None:
        lines.append(f"Content-Length: {head.length}")
    if close:
        lines.append("Connection: close")
    elif version == "1.0":
        lines.append("Connection: keep-alive")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _request_of(environ: dict[str, Any]) -> Request:
    query = environ["QUERY_STRING"]
    length = int(environ.get("CONTENT_LENGTH") or 0)
    return Request(
        method=environ["REQUEST_METHOD"],
        # Our PATH_INFO is the path as it stands in the request line.
        target=environ["PATH_INFO"] + (f"?{query}" if query else ""),
        headers=tuple(_headers_of(environ)),
        body=environ["wsgi.input"] if length or environ["REQUEST_METHOD"] in {"PUT", "POST", "PATCH"} else None,
        length=length,
    )


def _headers_of(environ: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in environ.items():
        if name.startswith("HTTP_"):
            yield name[5:].replace("_", "-").title(), value
    if kind := environ.get("CONTENT_TYPE"):
        yield "Content-Type", kind
