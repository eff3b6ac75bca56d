"""What a tool asks of a model (``sampling/createMessage``), where its caller has none: read, and offered as a call.

Owns the form of the question and of its answer. The call is no tool's and in no catalogue, but it is recorded, held at
the gate and cancelled like one, under its own name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from a2mcp.errors import BadArgument, ToolError
from a2mcp.tools.registry import Entry
from a2mcp.tools.result import SAMPLE
from a2mcp.tools.spec import Tier, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2mcp.tools.context import Context
    from a2mcp.tools.result import Outcome


class Block(msgspec.Struct, frozen=True, rename="camel"):
    """A piece of a message."""

    type: str
    text: str = ""
    data: str = ""
    mime_type: str = ""


class Said(msgspec.Struct, frozen=True):
    """A message."""

    role: Literal["user", "assistant"]
    content: Block | list[Block]

    @property
    def blocks(self) -> list[Block]:
        """Its pieces."""
        return self.content if isinstance(self.content, list) else [self.content]


class Sampled(msgspec.Struct, frozen=True, rename="camel"):
    """What a model is asked. Which model is the host's affair; what else may be wished for is not looked at."""

    messages: list[Said]
    max_tokens: int | None = None
    system_prompt: str | None = None
    temperature: float | None = None
    stop_sequences: list[str] | None = None


def read(raw: bytes | msgspec.Raw) -> Sampled:
    """Read the question.

    Raises:
        BadArgument: it is none.
    """
    try:
        return msgspec.json.decode(raw, type=Sampled)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadArgument("params", f"those of {SAMPLE}", str(error)[:200]) from error


def answer(said: str, model: str, *, cut: bool) -> dict[str, Any]:
    """Write the answer."""
    content = {"type": "text", "text": said}
    return {"role": "assistant", "content": content, "model": model, "stopReason": "maxTokens" if cut else "endTurn"}


class SamplingHost:
    """A host with one thing to call, which no catalogue lists."""

    name = "models"

    def list(self) -> Sequence[ToolSpec]:
        """Nothing is offered as a tool."""
        return ()

    def call(self, _name: str, raw_arguments: bytes | msgspec.Raw | None, context: Context) -> Outcome:
        """Pass the question on."""
        if context.agents is None:
            raise ToolError("There is no model here.")
        return context.agents.sample(context.ticket, read(raw_arguments or b""))

    def state(self) -> str:
        """Nothing to say."""
        return ""

    def attach(self, announce: Callable[[Sequence[ToolSpec]], None]) -> None:
        """Its list never changes."""


ENTRY: Final = Entry(
    SamplingHost(),
    ToolSpec(name=SAMPLE, title="Ask a model", description="", input_schema={}, tier=Tier.EXECUTE, open_world=True),
)
"""What the executor runs. The tier is that of what costs money without being asked for."""
