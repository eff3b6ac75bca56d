"""One request run through the app: its WSGI environment, and what the app returned."""

from __future__ import annotations

import logging
import sys
from io import BytesIO
from typing import TYPE_CHECKING, Any

from a2mcp.errors import Internal
from a2mcp.http.server.parked import Parked
from a2mcp.protocol.refusal import response_for
from a2mcp.protocol.response import Response

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
    return Response(int(status[:3]), body, kept)


def environment(request: RequestParser) -> dict[str, Any]:
    """The WSGI environment of a request.

    ``PATH_INFO`` is the path as it stands in the request target, not decoded as PEP 3333 has it: routing looks at what
    was sent (DESIGN §5), and no route of ours needs a decoded one.
    """
    receiver = request.body_rcv
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.command,
        "SERVER_NAME": "a2mcp",
        "SERVER_PORT": "0",
        "SERVER_PROTOCOL": f"HTTP/{request.version}",
        "SCRIPT_NAME": "",
        "PATH_INFO": request.raw_path,
        "REQUEST_URI": request.request_uri,
        "QUERY_STRING": request.query,
        "wsgi.url_scheme": "http",
        "wsgi.version": (1, 0),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.input": receiver.getfile() if receiver is not None else BytesIO(),
        "wsgi.input_terminated": True,
    }
    for name, value in request.headers.items():
        environ[name if name in ("CONTENT_LENGTH", "CONTENT_TYPE") else "HTTP_" + name] = value
    return environ
