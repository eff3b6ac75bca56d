"""The caller's end of a running call: progress and log messages, on the stream of its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2mcp.protocol import notices

if TYPE_CHECKING:
    from a2mcp.protocol.exchange import Exchange


class CallTeller:
    """A ``Teller`` for one call."""

    __slots__ = ("_exchange", "_last", "_tool")

    def __init__(self, exchange: Exchange, tool: str) -> None:
        self._exchange = exchange
        self._tool = tool
        self._last = float("-inf")

    @property
    def wants_progress(self) -> bool:
        """Whether the caller gave a token for progress."""
        return self._exchange.caller.progress_token is not None

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress; the values a caller sees only rise."""
        token = self._exchange.caller.progress_token
        if token is not None and done > self._last:
            self._last = done
            self._exchange.reply.send(notices.progress(token, done, total, message))

    def log(self, level: str, data: Any) -> None:
        """Send a log message of a level that the caller wants."""
        if self._exchange.caller.wants_log(level):
            self._exchange.reply.send(notices.log(level, self._tool, data))
