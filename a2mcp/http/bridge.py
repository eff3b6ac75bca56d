"""The bridge dialect over HTTP: POST carries one message, DELETE ends a session.

By the time a request is here the guard has let it in. What is left of the order of checks (seed, "Order of
processing"): body, JSON-RPC shape, session, method. The session is looked at by the actor that owns the table, so
whatever a method answers is prepared here and sent only if the session is alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2mcp.audit.record import client_name
from a2mcp.errors import MissingSession, RequestError
from a2mcp.http.server.parked import Parked
from a2mcp.protocol import bridge, jsonrpc
from a2mcp.protocol.caller import NOBODY, Caller
from a2mcp.protocol.exchange import Exchange
from a2mcp.protocol.response import Response
from a2mcp.types import SessionId

if TYPE_CHECKING:
    import falcon

    from a2mcp.http.ports import FrontPort

SESSION_HEADER: Final = "MCP-SESSION-ID"
CLIENT: Final = "HTTP_X_A2MCP_CLIENT"
_ACCEPTED: Final = Response(202)


class Bridge:
    """The resource on every path that is not reserved."""

    def __init__(self, front: FrontPort) -> None:
        self._front = front

    def __call__(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Hand the request over and leave a parked response."""
        parked = Parked()
        resp.stream = parked
        session = req.get_header(SESSION_HEADER)
        session_id = SessionId(session) if session else None
        if req.method == "DELETE":
            self._front.end_session(Exchange(parked, jsonrpc.NULL, session_id))
            return
        message = jsonrpc.decode(req.env["wsgi.input"].read())
        # PERF: looked up where it lies; most clients do not send it.
        client = req.env.get(CLIENT)
        caller = Caller(client=client_name(client)) if client else NOBODY
        exchange = Exchange(parked, message.request_id, session_id, caller=caller)
        try:
            self._hand_over(exchange, message)
        except RequestError as error:
            error.request_id = message.request_id
            raise

    def _hand_over(self, exchange: Exchange, message: jsonrpc.Message) -> None:
        if message.method == "initialize":
            self._front.open_session(exchange, bridge.INITIALIZED)
        elif exchange.session_id is None:
            raise MissingSession("missing mcp-session-id")
        else:
            self._dispatch(exchange, message)

    def _dispatch(self, exchange: Exchange, message: jsonrpc.Message) -> None:
        request_id = exchange.request_id
        if message.method == "tools/call":
            params = bridge.call_params(message.params)
            if params is not None:
                self._front.call(exchange, params.name, params.arguments)
                return
            body = jsonrpc.error(request_id, jsonrpc.INVALID_PARAMS, "invalid params: 'name' must be a string")
        elif message.method == "tools/list":
            body = jsonrpc.result(request_id, bridge.listed(self._front.catalog()))
        elif message.method == "ping":
            body = jsonrpc.result(request_id, bridge.EMPTY)
        elif message.method.startswith(bridge.NOTIFICATION):
            if message.method == bridge.CANCELLED:
                self._front.cancel_requested(message.params, exchange.session_id)
            self._front.answer(exchange, _ACCEPTED)
            return
        else:
            body = jsonrpc.error(request_id, jsonrpc.METHOD_NOT_FOUND, "method not found")
        self._front.answer(exchange, Response(200, body))
