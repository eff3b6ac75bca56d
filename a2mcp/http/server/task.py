"""One request run through the app: its WSGI environment, and what the app returned."""

from __future__ import annotations

import logging
from io import BytesIO
from typing import TYPE_CHECKING, Any

from a2mcp.errors import Internal
from a2mcp.http.server.parked import Parked
from a2mcp.protocol.refusal import response_for
from a2mcp.protocol.response import JSON, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from a2mcp.http.server.parser import RequestParser

    WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes] | Parked]

logger = logging.getLogger("a2mcp.http")


def run(app: WsgiApp, request: RequestParser) -> Response | Parked:
    """Ask the app for the response of a request, or for the promise of one. Never raises."""
    if request.error is not None:
        return response_for(request.error)
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], _exc_info: object = None) -> None:
        started.append((status, headers))

    try:
        returned = app(environment(request), start_response)
        if isinstance(returned, Parked):
            return returned
        body = b"".join(returned)
    except Exception:  # The rim: the app's own error handlers come before this one.
        logger.exception("[a2mcp] internal error:")
        return response_for(Internal())
    status, headers = started[-1]
    kept = tuple((name, value) for name, value in headers if name.lower() not in ("content-length", "content-type"))
    kind = next((value for name, value in headers if name.lower() == "content-type"), JSON)
    # The response writer knows the usual one by its identity.
    return Response(int(status[:3]), body, kept, content_type=JSON if kind == JSON else kind)


def environment(request: RequestParser) -> dict[str, Any]:
    """The WSGI environment of a request: what its head says, and its body."""
    environ = request.environ.copy()
    receiver = request.body_rcv
    environ["wsgi.input"] = receiver.getfile() if receiver is not None else BytesIO()
    if request.chunked:
        environ["CONTENT_LENGTH"] = request.headers["CONTENT_LENGTH"]
    return environ
