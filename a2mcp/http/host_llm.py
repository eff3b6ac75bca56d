"""The route ``/host-llm``: the one thing a caller may do to the host that is no tool of it.

By the time a request is here the guard has let it in: method and token come before the body (seed, "宿主推理切换").
What the body says is told to the front; the answer is how the switch stands, or ``error`` with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from a2mcp.http.bridge import SESSION_HEADER
from a2mcp.http.server.parked import Parked
from a2mcp.protocol import jsonrpc
from a2mcp.protocol.exchange import Exchange
from a2mcp.protocol.response import Response
from a2mcp.types import SessionId

if TYPE_CHECKING:
    import falcon


_WRONG: Final = "the body must be a JSON object whose 'enabled' is true or false"


class SwitchPort(Protocol):
    """The way from the edge to the switch of the host's inference."""

    def switch_inference(self, exchange: Exchange, *, enabled: bool) -> None:
        """Turn it, and answer the exchange with how it stands then.

        Raises:
            Busy, Stopping: nothing is turned.
        """
        ...


class Asked(msgspec.Struct, frozen=True):
    """The body. Other members are ignored, as everywhere on this port."""

    enabled: bool


class HostLlm:
    """The resource on ``/host-llm``.

    Args:
        switch: turns it; None where there is none to turn.
    """

    def __init__(self, switch: SwitchPort | None) -> None:
        self._switch = switch

    def __call__(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Hand the request over and leave a parked response."""
        parked = Parked()
        resp.stream = parked
        try:
            asked = msgspec.json.decode(req.env["wsgi.input"].read(), type=Asked)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            parked.complete(_refusal(400, _WRONG))
            return
        if self._switch is None:
            parked.complete(_refusal(501, "this server has no switch of the host's inference"))
            return
        session = req.get_header(SESSION_HEADER)
        exchange = Exchange(parked, jsonrpc.NULL, SessionId(session) if session else None)
        self._switch.switch_inference(exchange, enabled=asked.enabled)


def _refusal(status: int, reason: str) -> Response:
    return Response(status, msgspec.json.encode({"error": reason}))
