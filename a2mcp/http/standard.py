"""The standard dialect over HTTP, on ``/mcp``: every revision of MCP, without sessions, slow answers as streams.

By the time a request is here the guard has let it in. What is left of the order of checks: body, JSON-RPC shape,
version, method. A message is a request, a notification or a client's response to a question of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2mcp.errors import A2mcpError, RequestError
from a2mcp.http import sse
from a2mcp.http.server.parked import Parked
from a2mcp.protocol import eras, jsonrpc, methods
from a2mcp.protocol.exchange import Exchange
from a2mcp.protocol.refusal import response_for
from a2mcp.protocol.response import Response

if TYPE_CHECKING:
    import falcon

    from a2mcp.http.ports import StandardPort
    from a2mcp.protocol.dialects import Dialect
    from a2mcp.protocol.eras import Params

CLIENT_HEADER: Final = "X-A2MCP-CLIENT"
VERSION_HEADER: Final = "MCP-PROTOCOL-VERSION"


class Standard:
    """The resource on ``/mcp``."""

    def __init__(self, services: StandardPort) -> None:
        self._services = services

    def __call__(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Answer, or hand the request over and leave a parked response."""
        if req.method == "OPTIONS":
            resp.status = "204"
            resp.set_header("Allow", "POST, OPTIONS")
            return
        message = jsonrpc.decode_any(req.env["wsgi.input"].read())
        if isinstance(message, jsonrpc.Answer):
            eras.check_response(req.get_header(VERSION_HEADER))
            self._services.replied(message)
            resp.status = "202"
        elif message.is_notification:
            self._notified(message, req.get_header(VERSION_HEADER))
            resp.status = "202"
        else:
            self._request(message, req, resp)

    def _notified(self, message: jsonrpc.Message, version: str | None) -> None:
        eras.check_notification(version)
        if message.method == "notifications/cancelled":
            self._services.cancel_requested(message.params)

    def _request(self, message: jsonrpc.Message, req: falcon.Request, resp: falcon.Response) -> None:
        try:
            params = eras.read_params(message.params)
            dialect = eras.dialect_of(message.method, params, req.get_header)
        except RequestError as error:
            error.request_id = message.request_id
            raise
        accept = req.get_header("ACCEPT")
        takes = sse.tolerated if message.method in methods.ONLY_STREAMS else sse.accepted
        parked = Parked(streams=takes(accept), only_streams=sse.only_streams(accept))
        resp.stream = parked
        self._answer(message, params, dialect, parked, req)

    def _answer(
        self, message: jsonrpc.Message, params: Params, dialect: Dialect, parked: Parked, req: falcon.Request
    ) -> None:
        request_id = message.request_id
        try:
            caller = eras.caller_of(params, dialect, req.get_header(CLIENT_HEADER))
            exchange = Exchange(parked, request_id, None, dialect, caller)
            asked = methods.Asked(exchange, params, message.params, req.get_header)
            encoded = methods.answer(self._services, message.method, asked)
        except A2mcpError as error:
            parked.complete(_refusal(error, request_id, dialect))
            return
        if encoded is not None:
            parked.complete(Response(200, jsonrpc.result(request_id, dialect.sealed(encoded))))


def _refusal(error: A2mcpError, request_id: bytes, dialect: Dialect) -> Response:
    """An error of a method: in a legacy dialect it travels as any other answer, with status 200."""
    response = response_for(error, request_id)
    if dialect.http_statuses or error.status >= 500:
        return response
    return Response(200, response.body, response.headers)
