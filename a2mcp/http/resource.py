"""What every resource of the operator's channel does: hold the port, read a body or a query, write an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import falcon
import msgspec

if TYPE_CHECKING:
    from a2mcp.http.ports import OperatorPort

T = TypeVar("T")


class Resource:
    """A resource that asks the operator's port."""

    def __init__(self, port: OperatorPort) -> None:
        self._port = port


def body(request: falcon.Request, kind: type[T], what: str) -> T:
    """Read the body.

    Raises:
        falcon.HTTPBadRequest: it is not what was asked for.
    """
    try:
        return msgspec.json.decode(request.bounded_stream.read(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise falcon.HTTPBadRequest(description=f"The {what} is not valid: {error}.") from error


def query(request: falcon.Request, kind: type[T]) -> T:
    """Read the query.

    Raises:
        falcon.HTTPBadRequest: it is not what was asked for.
    """
    try:
        return msgspec.convert(request.params, kind, strict=False)
    except msgspec.ValidationError as error:
        raise falcon.HTTPBadRequest(description=f"The query is not valid: {error}.") from error


def reply(response: falcon.Response, value: Any) -> None:
    """Answer with JSON."""
    response.content_type = falcon.MEDIA_JSON
    response.data = msgspec.json.encode(value)
