"""What a tool is: its name, its words for the model, its schema, and how it is run.

Knows nothing of actors or HTTP: the registry offers specs, the executor reads ``lane`` and ``tier``.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.tools.context import Context
    from a2mcp.tools.result import Outcome
    from a2mcp.types import JsonObject

P = TypeVar("P", bound=msgspec.Struct)


class Tier(enum.StrEnum):
    """What a call can do to the machine; approval mode ``write`` asks for all but ``READ``."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"


class Lane(enum.StrEnum):
    """Where a tool runs."""

    WORKER = "worker"
    """In a worker of the pool: it may block on files."""
    INLINE = "inline"
    """In the executor itself: takes microseconds and never blocks."""


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a client sees it, plus where it runs and what it can do."""

    name: str
    title: str
    description: str
    input_schema: JsonObject
    tier: Tier
    lane: Lane = Lane.WORKER
    idempotent: bool = False
    """Calling it twice with the same arguments is the same as calling it once."""
    open_world: bool = False
    """It can reach beyond this machine."""
    output_schema: JsonObject | None = None
    past_mode: bool = False
    """Served by the daemon itself: ``approval.mode`` does not hold it, a rule for its name does."""


class Tool(msgspec.Struct, Generic[P], frozen=True):
    """A tool of this host: the spec, the type of its parameters, and the function that does it.

    ``run`` raises ``ToolError`` for what the caller can mend and returns ``PENDING`` when another actor will complete
    the call.
    """

    spec: ToolSpec
    params: type[P]
    run: Callable[[P, Context], Outcome]


AnyTool = Tool[Any]
