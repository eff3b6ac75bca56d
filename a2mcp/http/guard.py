"""What is refused as soon as the headers end, before a byte of body is read.

The order is a public contract: Host and Origin (403), path and method (405), token (401), announced size (413).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from a2mcp.auth.origin import host_name, is_loopback
from a2mcp.errors import BodyTooLarge, Forbidden, MethodNotAllowed, RequestError, Unauthorized
from a2mcp.http.routes import Access, Route, route_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2mcp.auth.bearer import Bearer
    from a2mcp.auth.origin import AllowedHosts


TOKEN_HEADER: Final = "X_A2MCP_TOKEN"  # noqa: S105  # The header's name, not a token.
"""On ``/mcp``, for clients that cannot set ``Authorization``."""

SMALL_BYTES: Final = 64 * 1024
"""The largest body where bodies are small: of ``/host-llm``, of the operator's page, and of anybody without a token."""

_PASSED_ON: Final = ("FORWARDED", "X_FORWARDED_FOR", "X_FORWARDED_HOST", "X_REAL_IP", "CF_CONNECTING_IP", "VIA")
"""What those add who pass requests on."""


class Head(Protocol):
    """The head of a request, as the parser has it."""

    command: str
    raw_path: str
    authority: str
    """The host of an absolute-form target, or an empty string."""
    content_length: int
    headers: Mapping[str, str]
    """Upper-case names with underscores, for example ``MCP_SESSION_ID``."""
    from_here: bool
    """Whether the connection comes from this machine."""


class Judge(Protocol):
    """What decides whether a request is let in, by its head and by the size of its body."""

    @property
    def generation(self) -> int:
        """Rises whenever an earlier "allowed" may no longer hold."""
        ...

    def refusal(self, head: Head) -> RequestError | None:
        """The reason to refuse this request, or None."""
        ...

    def judges_by_head(self, raw_path: str) -> bool:
        """Whether the same head on another connection is judged the same, so that the verdict may be remembered."""
        ...

    def asks_for_token(self, raw_path: str) -> bool:
        """Whether nothing but the token lets a request in there."""
        ...

    def too_large(self, raw_path: str, size: int) -> BodyTooLarge | None:
        """The refusal of a body over the limit of its path, whether announced or only counted."""
        ...


class Guard:
    """Judges the head of each request.

    Args:
        bearer: the token.
        hosts: the names we answer to.
        body_bytes: the largest body taken.
        mcp_body_bytes: the largest one taken on ``/mcp``.
        upload_bytes: the largest one taken on ``/xfer``.
    """

    def __init__(
        self,
        bearer: Bearer,
        hosts: AllowedHosts,
        *,
        body_bytes: int,
        mcp_body_bytes: int | None = None,
        upload_bytes: int | None = None,
    ) -> None:
        self._bearer = bearer
        self._hosts = hosts
        self._body_bytes = body_bytes
        self._mcp_body_bytes = body_bytes if mcp_body_bytes is None else mcp_body_bytes
        self._upload_bytes = body_bytes if upload_bytes is None else upload_bytes

    @property
    def generation(self) -> int:
        """Rises whenever an earlier "allowed" may no longer hold."""
        return self._bearer.generation + self._hosts.generation

    def refusal(self, head: Head) -> RequestError | None:
        """The reason to refuse this request, or None."""
        if not self._names_are_ours(head):
            return Forbidden(
                "forbidden: Host or Origin is not one of ours.", hint="Add the name to 'allowed_hosts' if it is yours."
            )
        route = route_for(head.raw_path)
        if head.command not in route.methods:
            return _wrong_method(route)
        if not self._may(head, route):
            return _refused(route)
        return self.too_large(head.raw_path, head.content_length)

    @staticmethod
    def judges_by_head(raw_path: str) -> bool:
        """Whether the same head on another connection is judged the same, so that the verdict may be remembered."""
        return route_for(raw_path).access not in {Access.HERE, Access.PAGE}

    @staticmethod
    def asks_for_token(raw_path: str) -> bool:
        """Whether nothing but the token lets a request in there."""
        return route_for(raw_path).access is Access.TOKEN

    def too_large(self, raw_path: str, size: int) -> BodyTooLarge | None:
        """The refusal of a body over the limit of its path, whether announced or only counted."""
        route = route_for(raw_path)
        limit = self._mcp_body_bytes if route.standard else self._body_bytes
        if route.name == "xfer":
            limit = self._upload_bytes
        elif route.access is not Access.TOKEN or route.name == "host-llm":
            limit = SMALL_BYTES  # SECURITY: a stranger may send one where no token is asked for.
        return BodyTooLarge(f"the body is larger than {limit} bytes") if size > limit else None

    def _may(self, head: Head, route: Route) -> bool:
        match route.access:
            case Access.ANYBODY:
                return True
            case Access.PAGE:
                return is_from_here(head)
            case Access.HERE if is_from_here(head):
                return True
            case _:
                return self._knows_token(head, route)

    def _knows_token(self, head: Head, route: Route) -> bool:
        authorization = head.headers.get("AUTHORIZATION")
        if authorization is None and route.standard and (token := head.headers.get(TOKEN_HEADER)):
            authorization = f"Bearer {token}"
        return self._bearer.allows(authorization)

    def _names_are_ours(self, head: Head) -> bool:
        host = head.headers.get("HOST")
        origin = head.headers.get("ORIGIN")
        return (
            (host is None or self._hosts.host(host))
            and (not head.authority or self._hosts.host(head.authority))
            and (origin is None or self._hosts.origin(origin))
        )


def is_from_here(head: Head) -> bool:
    """Whether somebody on this machine asks, and not a proxy or a tunnel on this machine for somebody elsewhere.

    SECURITY: a tunnel connects from loopback, too. What tells it is the name it was asked by, and what it adds. Every
    name counts, in the target and in ``Host``: who passes a request on may leave either as it came.
    """
    given = [name for name in (head.authority, head.headers.get("HOST")) if name]
    hosts = [host_name(name) for name in given]
    return (
        head.from_here
        and bool(hosts)
        and all(host is not None and is_loopback(host) for host in hosts)
        and not any(header in head.headers for header in _PASSED_ON)
    )


def _wrong_method(route: Route) -> MethodNotAllowed:
    error = MethodNotAllowed("method not allowed")
    if route.standard:
        error.headers = (("Allow", ", ".join(sorted(route.methods, reverse=True))),)
    return error


def _refused(route: Route) -> RequestError:
    if route.access is Access.PAGE:
        return Forbidden(
            "forbidden: the operator's page is for this machine alone.",
            hint="Open it there, by a loopback address, with `a2mcp ui`.",
        )
    error = Unauthorized("unauthorized")
    if route.standard:
        error.headers = (("WWW-Authenticate", 'Bearer realm="a2mcp"'),)
    return error
