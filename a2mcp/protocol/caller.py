"""What a request says about who sent it and what it takes; facts of one request, never remembered."""

from __future__ import annotations

from typing import Final

import msgspec

from a2mcp.types import JsonObject

PREFIX: Final = "io.modelcontextprotocol/"
VERSION: Final = PREFIX + "protocolVersion"
CAPABILITIES: Final = PREFIX + "clientCapabilities"
CLIENT_INFO: Final = PREFIX + "clientInfo"
LOG_LEVEL: Final = PREFIX + "logLevel"
SUBSCRIPTION: Final = PREFIX + "subscriptionId"

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The sender of one request."""

    client: str | None = None
    """What it calls itself; for attribution only."""
    progress_token: bytes | None = None
    """The JSON of the token that progress is to be reported under."""
    capabilities: JsonObject | None = None
    """What it can be asked for; None where the dialect does not say."""
    log_level: str | None = None
    """The least severe log message it wants; None for none."""
    answers: JsonObject = {}
    """Its answers to what a tool asked before, by key."""
    state: str | None = None
    """What it was given to send back with them."""
    trace: dict[str, str] = {}
    """Where its own trace stands: ``traceparent`` and ``tracestate`` (W3C Trace Context)."""

    def wants_log(self, level: str) -> bool:
        """Whether a log message of this level is to be sent."""
        return self.log_level is not None and LEVELS.index(level) >= LEVELS.index(self.log_level)


NOBODY: Final = Caller()
