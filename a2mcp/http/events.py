"""Where events are watched on this machine: a Unix socket of its own, beside the operator's channel.

The operator's channel has a thread for each question, which a stream would hold for ever. This one is served by the
same kind of loop as the main server, so a hundred watchers cost a hundred connections and no thread. One request is
understood: ``GET /events``, answered by server-sent events until the watcher leaves.

``after=N`` starts behind the event N (also as the header ``Last-Event-ID``), ``history=N`` with the last N; ``tool``,
``status``, ``session``, ``path`` and ``kind`` choose.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import msgspec

from a2mcp.errors import A2mcpError, BodyTooLarge, InvalidParams, MethodNotAllowed, NotFound, RequestError
from a2mcp.http.facts import EventsAsked
from a2mcp.http.server.connections import Connections
from a2mcp.http.server.parked import Parked
from a2mcp.http.server.server import Server
from a2mcp.protocol.refusal import response_for

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from a2mcp.http.guard import Head
    from a2mcp.observe.watching import Outlet

PATH: Final = "/events"
WATCHERS: Final = 256
STOP_S: Final = 1.0


class Asked(EventsAsked, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a watcher wants; ``after`` is the last event that it has seen."""

    history: int = 0
    """How many earlier events one that has seen none is told of."""


def asked(query: str, last_event_id: str | None = None) -> Asked:
    """Read what a watcher wants; what a reconnecting browser says of its last event counts before the query.

    Raises:
        InvalidParams: it cannot be understood.
    """
    given: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True, errors="replace"))
    if last_event_id is not None:
        given["after"] = last_event_id
    try:
        found = msgspec.convert(given, Asked, strict=False)
    except msgspec.ValidationError as cause:
        raise InvalidParams(f"invalid query: {cause}") from cause
    if (found.after or 0) < 0 or found.history < 0:
        raise InvalidParams("invalid query: 'after' and 'history' must not be negative")
    return found


class EventServer:
    """Serves watchers until stopped.

    Args:
        sock: a bound Unix socket.
        watch: is given an outlet and what to tell it.
    """

    def __init__(self, sock: socket.socket, watch: Callable[[Outlet, Asked], None]) -> None:
        self._watch = watch
        self._server = _UnixServer(self._app, sock, guard=_OnlyEvents(), connections=Connections(WATCHERS, WATCHERS))
        self._thread = threading.Thread(target=self._server.run, name="Watchers", daemon=True)

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Let every watcher go."""
        self._server.finish()
        if self._thread.ident is not None:  # Else the system had no thread for it.
            self._thread.join(STOP_S)

    def _app(self, environ: dict[str, Any], _start_response: Any) -> Parked:
        parked = Parked(streams=True)
        try:
            wanted = asked(environ["QUERY_STRING"], environ.get("HTTP_LAST_EVENT_ID"))
            self._watch(parked, wanted)
        except A2mcpError as error:
            parked.complete(response_for(error))
        return parked


class _UnixServer(Server):
    """The loop on a Unix socket, which has neither an address nor options of TCP."""

    def getsockname(self) -> tuple[str, str]:
        return "unix", "events"

    def set_socket_options(self, conn: socket.socket) -> None:
        pass


class _OnlyEvents:
    """Lets in whoever could open the socket, to its one path."""

    generation = 0

    def refusal(self, head: Head) -> RequestError | None:
        if head.raw_path != PATH:
            return NotFound("nothing is served on this path", hint="Ask for /events.")
        if head.command != "GET":
            return MethodNotAllowed("method not allowed")
        return self.too_large(head.raw_path, head.content_length)

    def judges_by_head(self, _raw_path: str) -> bool:
        return True

    def asks_for_token(self, _raw_path: str) -> bool:
        return False

    def too_large(self, _raw_path: str, size: int) -> BodyTooLarge | None:
        return BodyTooLarge("a watcher sends no body") if size else None
