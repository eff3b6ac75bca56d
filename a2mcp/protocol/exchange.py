"""One request and its reply, as values: what travels down the mailboxes while the connection is parked.

Knows neither HTTP parsing nor actors. ``Reply`` is the only way an answer gets back to a connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from a2mcp.protocol.refusal import response_for
from a2mcp.protocol.response import Response

if TYPE_CHECKING:
    from a2mcp.errors import A2mcpError
    from a2mcp.types import SessionId


class Reply(Protocol):
    """The place where the answer of one request goes. May be completed from any thread."""

    def complete(self, response: Response) -> bool:
        """Send the response, once. Later calls change nothing and return False."""
        ...


class Exchange(msgspec.Struct, frozen=True):
    """One JSON-RPC request on its way."""

    reply: Reply
    request_id: bytes
    """The caller's JSON-RPC id, as the bytes it came in: echoed exactly, never used as a key."""
    session_id: SessionId | None
    """What ``mcp-session-id`` said. Not yet checked when the exchange is made."""

    def fail(self, error: A2mcpError) -> bool:
        """Answer with an error, unless it is answered already."""
        return self.reply.complete(response_for(error, self.request_id))
