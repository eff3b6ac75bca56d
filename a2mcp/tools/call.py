"""One ``tools/call`` in flight: what was asked, and the one right to end it.

Several actors can want to end a call at the same moment (the tool is done, the operator denies, the daemon stops). Who
claims it first does; so its ``done`` record is written exactly once.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from a2mcp.errors import InvalidParams, NoSuchResource, NotExposed, RequestError, ResourceNotFound, ToolError
from a2mcp.masking import mask
from a2mcp.tools.asking import InputRequired
from a2mcp.tools.result import Needs, Outcome, Refusal, Result, Text, text

if TYPE_CHECKING:
    from a2mcp.audit.record import Summary
    from a2mcp.protocol.exchange import Exchange
    from a2mcp.tools.context import Context
    from a2mcp.tools.registry import Entry
    from a2mcp.types import CallId, JsonObject, SessionId

logger = logging.getLogger("a2mcp.tools")

TOOLS_CALL: Final = "tools/call"


class Call(msgspec.Struct, frozen=True, eq=False):
    """A call by our own id. A ``Ticket`` to the tool that runs it."""

    call_id: CallId
    exchange: Exchange
    tool: str
    arguments: msgspec.Raw
    summary: Summary
    """The arguments as both audit records have them."""
    method: str = TOOLS_CALL
    _end: threading.Lock = msgspec.field(default_factory=threading.Lock)

    @property
    def session_id(self) -> SessionId | None:
        """The session it came on."""
        return self.exchange.session_id

    def claim(self) -> bool:
        """Take the right to end this call; True for the first who asks, on whatever thread."""
        return self._end.acquire(blocking=False)

    def has_ended(self) -> bool:
        """Whether somebody has taken the right to end it."""
        return self._end.locked()


def with_answers(call: Call, answers: JsonObject) -> Call:
    """Make the same call with other answers of its caller."""
    exchange = call.exchange
    return replace(call, exchange=replace(exchange, caller=replace(exchange.caller, answers=answers)))


def run(entry: Entry, call: Call, context: Context) -> Outcome:
    """Run the tool of a call. Whatever it raises becomes a result that the caller can read.

    A tool that calls ``sys.exit()`` or runs out of memory costs its call, not the thread it runs on.
    """
    try:
        return entry.host.call(call.tool, call.arguments, context)
    except InputRequired as need:
        return Needs(need.questions, need.state)
    except ToolError as error:
        return refused(error, call)
    except RequestError as error:
        return Refusal(error)
    except BaseException as cause:  # The rim of every tool.
        logger.warning("[a2mcp] tool '%s' failed", entry.spec.name, exc_info=cause)
        return text(f"The tool failed: {type(cause).__name__}: {mask(str(cause))[:500]}", is_error=True)


def not_done(outcome: Result) -> Refusal:
    """Turn a result that says why nothing was done into an error, for a method whose results cannot say no."""
    error = RequestError("".join(block.text for block in outcome.content if isinstance(block, Text)))
    error.code = -32000
    return Refusal(error)


def refused(error: ToolError, call: Call) -> Result | Refusal:
    """The outcome that tells a caller what could not be done, and what to do about it.

    What a tool could not do is a result that a model reads. A name that is not exposed, and anything that is no tool,
    has a JSON-RPC error where the dialect wants one.
    """
    dialect = call.exchange.dialect
    if isinstance(error, NoSuchResource):
        return Refusal(ResourceNotFound(error.uri, dialect.resource_not_found))
    if call.method != TOOLS_CALL or (dialect.unknown_tool_is_error and isinstance(error, NotExposed)):
        return Refusal(InvalidParams(error.text, hint=error.hint))
    return text(str(error), is_error=True)
