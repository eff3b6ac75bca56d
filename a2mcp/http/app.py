"""The app: the route table of ``routes`` with what serves each path, and errors as JSON-RPC bodies.

================  ==========================  =====================
path              methods                     served by
================  ==========================  =====================
``/mcp``          POST, OPTIONS               ``standard.Standard``
``/mcp/``         POST, OPTIONS               ``standard.Standard``
``/xfer`` and /…  any                         ``xfer.Files``
``/host-llm``     POST                        ``host_llm.HostLlm``
``/healthz``      GET, HEAD                   ``health.Health``
``/readyz``       GET, HEAD                   ``health.Ready``
``/ui`` and /…    GET, POST, DELETE           ``ui.Ui``
``/metrics``      GET, HEAD                   ``metrics.Metrics``
everything else   POST, DELETE                ``bridge.Bridge``
================  ==========================  =====================
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import falcon

from a2mcp.errors import A2mcpError, Internal, NotFound
from a2mcp.http.bridge import Bridge
from a2mcp.http.health import Health, Ready
from a2mcp.http.host_llm import HostLlm
from a2mcp.http.metrics import Metrics
from a2mcp.http.routes import BRIDGE, RESERVED, Route
from a2mcp.http.standard import Standard
from a2mcp.protocol.refusal import response_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.http.host_llm import SwitchPort
    from a2mcp.http.ports import Front, Probe
    from a2mcp.http.ui import Ui
    from a2mcp.http.xfer import Files

    Handler = Callable[..., None]

logger = logging.getLogger("a2mcp.http")


def make_app(  # noqa: PLR0913  # One for each part that may be there or not.
    front: Front,
    files: Files | None = None,
    *,
    switch: SwitchPort | None = None,
    probe: Probe | None = None,
    metrics: bool = True,
    ui: Ui | None = None,
) -> falcon.App[Any, Any]:
    """Build the WSGI app. It never blocks: it runs in the server's loop."""
    handlers: dict[str, Handler] = {
        "standard": Standard(front),
        "xfer": files or _reserved,
        "host-llm": HostLlm(switch),
        "health": Health(),
        "ui": ui or _reserved,
        "ready": Ready(probe) if probe else _reserved,
        "metrics": Metrics(probe, on=metrics) if probe else _reserved,
        "bridge": Bridge(front),
    }
    app = falcon.App(media_type="application/json")
    app.add_error_handler(A2mcpError, _answer_ours)
    app.add_error_handler(Exception, _answer_unexpected)
    # Falcon asks the sink that was added last first.
    for route in (BRIDGE, *reversed(RESERVED)):
        app.add_sink(handlers[route.name], _pattern(route))
    return app


def _pattern(route: Route) -> re.Pattern[str]:
    path = re.escape(route.path)
    if not route.subtree:
        return re.compile(path + r"\Z")
    return re.compile(path if route.path.endswith("/") else path + r"(?:/|\Z)")


def _reserved(_req: falcon.Request, _resp: falcon.Response) -> None:
    raise NotFound("nothing is served on this path")


def _answer_ours(_req: falcon.Request, resp: falcon.Response, error: A2mcpError, _params: dict[str, Any]) -> None:
    response = response_for(error)
    resp.stream = None
    resp.status = str(response.status)
    resp.data = response.body
    resp.content_type = response.content_type
    for name, value in response.headers:
        resp.set_header(name, value)


def _answer_unexpected(req: falcon.Request, resp: falcon.Response, error: Exception, params: dict[str, Any]) -> None:
    logger.error("[a2mcp] internal error:", exc_info=error)
    _answer_ours(req, resp, Internal(), params)
