"""One request and its reply, as values: what travels down the mailboxes while the connection is parked.

Knows neither HTTP parsing nor actors. ``Reply`` is the only way an answer gets back to a connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from a2mcp.protocol.caller import NOBODY, Caller
from a2mcp.protocol.dialects import Dialect
from a2mcp.protocol.refusal import response_for
from a2mcp.protocol.response import Response
from a2mcp.protocol.versions.bridge import BRIDGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.errors import A2mcpError
    from a2mcp.types import SessionId


class Reply(Protocol):
    """The place where the answer of one request goes. May be used from any thread; nothing here blocks."""

    def complete(self, response: Response) -> bool:
        """Send the response, once. Later calls change nothing and return False."""
        ...

    def begin_stream(self) -> bool:
        """Make the answer a stream if the client takes one; whether it is one now and still open."""
        ...

    def send(self, message: bytes) -> bool:
        """Send a JSON-RPC message before the answer; False when there is no stream for it."""
        ...

    def tend(self, now: float) -> None:
        """Do what time asks for: turn a slow answer into a stream, keep a silent stream alive."""
        ...

    def when_gone(self, tell: Callable[[], None]) -> None:
        """Have it told when the client leaves before its answer; at once when it has left already."""
        ...


class Exchange(msgspec.Struct, frozen=True):
    """One JSON-RPC request on its way."""

    reply: Reply
    request_id: bytes
    """The caller's JSON-RPC id, as the bytes it came in: echoed exactly, never used as a key."""
    session_id: SessionId | None = None
    """What ``mcp-session-id`` said, in a dialect with sessions. Not yet checked when the exchange is made."""
    dialect: Dialect = BRIDGE
    caller: Caller = NOBODY

    def fail(self, error: A2mcpError) -> bool:
        """Answer with an error, unless it is answered already."""
        return self.reply.complete(response_for(error, self.request_id))
