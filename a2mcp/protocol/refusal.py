"""Errors to responses: the one place where our errors become a status and a JSON-RPC body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2mcp.errors import Busy, FileRefusal, Internal, MethodNotAllowed, RequestError, Stopping
from a2mcp.protocol import jsonrpc
from a2mcp.protocol.response import Response

if TYPE_CHECKING:
    from a2mcp.errors import A2mcpError

RETRY_AFTER_S = "1"
TEXT = "text/plain; charset=utf-8"


def response_for(error: A2mcpError, request_id: bytes = jsonrpc.NULL) -> Response:
    """The response for an error: a JSON-RPC error body, but an empty one for 405 (seed, "Transport")."""
    if isinstance(error, MethodNotAllowed):
        return Response(error.status, headers=error.headers)
    if isinstance(error, FileRefusal):
        return Response(error.answer, f"{error.text}\n".encode("utf-8", "replace"), error.headers, content_type=TEXT)
    if not isinstance(error, RequestError):
        error = error if isinstance(error, Internal) else Internal()
    elif request_id == jsonrpc.NULL:
        request_id = error.request_id
    headers = getattr(error, "headers", ())
    if isinstance(error, Busy | Stopping):
        headers = (*headers, ("Retry-After", RETRY_AFTER_S))
    return Response(error.status, jsonrpc.error_of(request_id, error), headers)
