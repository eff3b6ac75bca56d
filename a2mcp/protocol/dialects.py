"""How one way of speaking MCP differs from another, as data: the transport has no ``if`` on a version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.protocol.pages import CACHED

if TYPE_CHECKING:
    from a2mcp.tools.result import Encoded

TEXT_AND_IMAGES: Final = frozenset({"text", "image", "resource"})


class Dialect(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One row of the table of differences. The defaults are the oldest revision of the standard dialect."""

    name: str
    version: str
    """The revision it speaks."""
    sessions: bool = False
    """Whether every request but ``initialize`` needs one."""
    streams: bool = True
    """Whether an answer may be an event stream."""
    blocks: frozenset[str] = TEXT_AND_IMAGES
    """The kinds of content that go out as they are; others become text."""
    structured: bool = False
    """Whether results carry data beside their text."""
    unknown_tool_is_error: bool = True
    """Whether a tool that is not exposed is a JSON-RPC error rather than a result that says so."""
    http_statuses: bool = False
    """Whether an error of a method has an HTTP status of its own."""
    closing_cancels: bool = False
    """Whether a client that closes the connection cancels what it asked for."""
    asks_by_stream: bool = False
    """Whether a tool may ask the caller by a request on the call's own stream."""
    asks_by_retry: bool = False
    """Whether a tool may ask the caller by a result that wants the call again, with answers."""
    mirrors: bool = False
    """Whether headers repeat what the body says, down to arguments."""
    cacheable: bool = False
    """Whether lists and reads say how long they hold."""
    resource_not_found: int = -32002
    signature: bytes = b""
    """What every result says of the server, as JSON members with a leading comma."""
    seal: bytes = b""
    """The same of every result that is complete, with what says so."""

    def sealed(self, encoded: bytes) -> bytes:
        """Add what every complete result of this dialect carries to an encoded object."""
        return _with(encoded, self.seal)

    def written(self, outcome: Encoded) -> bytes:
        """Write the result of a call that is no tool's."""
        body = outcome.body
        if outcome.cacheable and self.cacheable:
            body = body[:-1] + b"," + CACHED[1:]
        return _with(body, self.seal if outcome.sealed else self.signature)


def _with(encoded: bytes, members: bytes) -> bytes:
    if not members:
        return encoded
    return (encoded[:-1] + members if len(encoded) > len(b"{}") else b"{" + members[1:]) + b"}"
