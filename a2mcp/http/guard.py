"""What is refused as soon as the headers end, before a byte of body is read.

The order is a public contract: Host and Origin (403), path and method (405), token (401), announced size (413).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from a2mcp.errors import BodyTooLarge, Forbidden, MethodNotAllowed, RequestError, Unauthorized
from a2mcp.http.routes import methods_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2mcp.auth.bearer import Bearer
    from a2mcp.auth.origin import AllowedHosts


class Head(Protocol):
    """The head of a request, as the parser has it."""

    command: str
    raw_path: str
    authority: str
    """The host of an absolute-form target, or an empty string."""
    content_length: int
    headers: Mapping[str, str]
    """Upper-case names with underscores, for example ``MCP_SESSION_ID``."""


class Guard:
    """Judges the head of each request.

    Args:
        bearer: the token.
        hosts: the names we answer to.
        body_bytes: the largest body taken.
    """

    def __init__(self, bearer: Bearer, hosts: AllowedHosts, *, body_bytes: int) -> None:
        self._bearer = bearer
        self._hosts = hosts
        self._body_bytes = body_bytes

    @property
    def generation(self) -> int:
        """Rises whenever an earlier "allowed" may no longer hold."""
        return self._bearer.generation + self._hosts.generation

    def refusal(self, head: Head) -> RequestError | None:
        """The reason to refuse this request, or None."""
        headers = head.headers
        if not self._names_are_ours(head):
            return Forbidden(
                "forbidden: Host or Origin is not one of ours.", hint="Add the name to 'allowed_hosts' if it is yours."
            )
        if head.command not in methods_for(head.raw_path):
            return MethodNotAllowed("method not allowed")
        if not self._bearer.allows(headers.get("AUTHORIZATION")):
            return Unauthorized("unauthorized")
        if head.content_length > self._body_bytes:
            return self.too_large()
        return None

    def too_large(self) -> BodyTooLarge:
        """The refusal of a body over the limit, whether announced or only counted."""
        return BodyTooLarge(f"the body is larger than {self._body_bytes} bytes")

    def exceeds(self, size: int) -> bool:
        """Whether a body of this size is over the limit."""
        return size > self._body_bytes

    def _names_are_ours(self, head: Head) -> bool:
        host = head.headers.get("HOST")
        origin = head.headers.get("ORIGIN")
        return (
            (host is None or self._hosts.host(host))
            and (not head.authority or self._hosts.host(head.authority))
            and (origin is None or self._hosts.origin(origin))
        )
