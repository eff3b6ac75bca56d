"""One turn of an agent: the loop of the agent's library, from a prompt to the model's last words.

Owns how that library is driven: which tools it offers, what each attempt at a request passes, what is reported of it.
Does not know where tools run, what a model is, or who is told: all of that are ``Hands``. Imported by the first turn,
never by the daemon. Runs in a loop of its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from pydantic_ai import Agent, BinaryContent, Tool, ToolReturn
from pydantic_ai import exceptions as faults
from pydantic_ai.capabilities import Hooks
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    repair_messages,
)
from pydantic_ai.usage import UsageLimits

from a2mcp.errors import A2mcpError, BudgetSpent, CannotInfer, InferenceDenied
from a2mcp.inference import attempts
from a2mcp.inference.ledger import Spent
from a2mcp.inference.runner import Ended, Line, Step
from a2mcp.inference.transcript import Kind, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2mcp.inference.runner import Handed, Item
    from a2mcp.tools.spec import ToolSpec


LONGEST: Final = 1024 * 1024
"""Characters of one answer of a model."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn is to do."""

    prompt: str
    history: tuple[bytes, ...]
    """The library's own messages of the turns before, as JSON."""
    instructions: str
    tools: tuple[ToolSpec, ...]
    steps: int
    """Requests it may make."""


class Hands(Protocol):
    """What a turn works with."""

    async def model(self) -> Any:
        """Make what asks the model, for one attempt at one request, and count it.

        Raises:
            A2mcpError: it may not or cannot be asked.
        """
        ...

    async def use(self, tool: str, arguments: bytes) -> Handed:
        """Use a tool of the host; cancelled, the tool is cancelled, too."""
        ...

    def retries(self) -> int:
        """How often a request that failed is tried again, as of now."""
        ...

    def report(self, step: Step) -> None:
        """Tell what was done."""
        ...

    def hear(self) -> Sequence[Item]:
        """Take what the model is to read before its next request."""
        ...

    def denied(self) -> bool:
        """Whether the host may ask no model now."""
        ...

    def clean(self, text: str) -> str:
        """Leave out of what a provider said what nobody may see."""
        ...


async def take(work: Work, hands: Hands) -> Ended:
    """Take the turn; whatever goes wrong in it is its end."""
    turn = _Turn(work, hands)
    try:
        outcome, answer = Outcome.DONE, await turn.run()
    except asyncio.CancelledError:
        outcome, answer = Outcome.CANCELLED, "The turn was cancelled."
    except faults.UsageLimitExceeded:
        outcome = Outcome.LIMIT
        answer = f"The turn has made {work.steps} requests, as many as it may (setting 'agent.steps')."
    except (InferenceDenied, BudgetSpent) as error:
        outcome, answer = Outcome.REFUSED, str(error)
    except A2mcpError as error:
        outcome, answer = Outcome.FAILED, str(error)
    except Exception as cause:  # noqa: BLE001  # The rim of every turn: the library's faults are no reason to lose a session.
        outcome, answer = attempts.went_wrong(cause, hands)
    return turn.end(outcome, answer)


class _Turn:
    """A turn under way."""

    def __init__(self, work: Work, hands: Hands) -> None:
        self._work = work
        self._hands = hands
        self._seen = 0
        self._messages: list[Any] = []
        self._first: Any = None

    async def run(self) -> str:
        """Go through the loop, reporting each step; the model's last words."""
        self._first = await self._hands.model()
        agent = Agent(
            self._first,
            instructions=self._work.instructions,
            tools=[self._tool(spec) for spec in self._work.tools],
            retries=self._work.steps,
            capabilities=[
                Hooks(
                    before_model_request=self._before,
                    model_request_error=self._failed,
                    before_tool_validate=_only_objects,
                )
            ],
        )
        # What a kill or a cancellation cut off is closed: a provider refuses tools that were used and have no result.
        kept = ModelMessagesTypeAdapter.validate_json(b"[" + b",".join(self._work.history) + b"]")
        history = repair_messages(kept)
        self._seen = len(history)
        limits = UsageLimits(request_limit=self._work.steps)
        async with agent.iter(self._work.prompt, message_history=history, usage_limits=limits) as run:
            async for node in run:
                self._messages = run.all_messages()
                for item in self._hands.hear():
                    run.enqueue(item.read)
                if Agent.is_model_request_node(node):
                    self._report_results(node.request.parts)
                    async with node.stream(run.ctx) as stream:
                        await _whole(stream)
                    self._messages = run.all_messages()
                    _mend(self._messages[-1])
                    self._report_response(self._messages[-1])
        answer: str = run.result.output
        return answer

    def end(self, outcome: Outcome, answer: str) -> Ended:
        """Report what is left, and say how it ended."""
        self._keep(())
        return Ended(outcome=outcome, answer=answer, unread=tuple(self._hands.hear()))

    # --- requests ---------------------------------------------------------------------------------------------------

    async def _before(self, _ctx: Any, context: Any) -> Any:
        """Give each request a model that has just been let through."""
        context.model, self._first = self._first or await self._hands.model(), None
        return context

    async def _failed(self, _ctx: Any, *, request_context: Any, error: Exception) -> Any:
        """Try again what may go better the next time, with a model that has passed anew."""
        await attempts.pause(error, request_context.attempt, self._hands)
        raise faults.RetryModelRequest(await self._hands.model())

    # --- tools ------------------------------------------------------------------------------------------------------

    def _tool(self, spec: ToolSpec) -> Any:
        async def use(**arguments: Any) -> Any:
            handed = await self._hands.use(spec.name, msgspec.json.encode(arguments))
            if handed.is_error:
                raise faults.ToolFailed(handed.text)
            pictures = [BinaryContent(data=data, media_type=kind) for data, kind in handed.images]
            return ToolReturn(return_value=handed.text, content=pictures or None)

        return Tool.from_schema(use, name=spec.name, description=spec.description, json_schema=spec.input_schema)

    # --- what is told -----------------------------------------------------------------------------------------------

    def _report_results(self, parts: Sequence[Any]) -> None:
        """Tell what tools, or the lack of them, answered."""
        lines = [
            Line(
                kind=Kind.RESULT,
                text=part.content if isinstance(part.content, str) else part.model_response_str(),
                by=part.tool_name,
                id=part.tool_call_id,
                is_error=part.outcome != "success",
            )
            for part in parts
            if isinstance(part, ToolReturnPart)
        ]
        if lines:
            self._keep(tuple(lines))

    def _report_response(self, response: Any) -> None:
        """Tell what the model said and which tools it uses."""
        lines = []
        for part in response.parts if isinstance(response, ModelResponse) else ():
            if isinstance(part, TextPart) and part.content:
                lines.append(Line(kind=Kind.SAID, text=part.content))
            elif isinstance(part, ToolCallPart):
                arguments = part.args_as_json_str()
                lines.append(Line(kind=Kind.CALL, text=arguments, by=part.tool_name, id=part.tool_call_id))
        usage = response.usage
        self._keep(tuple(lines), Spent(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens))

    def _keep(self, lines: tuple[Line, ...], spent: Spent = Spent()) -> None:  # noqa: B008 - frozen
        new, self._seen = self._messages[self._seen :], max(self._seen, len(self._messages))
        messages = tuple(ModelMessagesTypeAdapter.dump_json([message])[1:-1] for message in new)
        self._hands.report(Step(lines=lines, messages=messages, spent=spent))


async def _whole(stream: Any) -> None:
    """Read an answer to its end, if it has one.

    Raises:
        CannotInfer: it is longer than any answer.
    """
    size = 0
    async for event in stream:
        size += _length(event)
        if size > LONGEST:
            raise CannotInfer(f"The model's answer is longer than {LONGEST} characters; it was not read to its end.")


def _length(event: Any) -> int:
    """How many characters an event brings."""
    piece = {"part_start": "part", "part_delta": "delta"}.get(event.event_kind, "")
    brought = getattr(event, piece, None)
    names = ("content", "content_delta", "args", "args_delta")
    return sum(len(text) for name in names if isinstance(text := getattr(brought, name, None), str))


def _mend(response: Any) -> None:
    """Make half characters visible that a provider's JSON may hold: nothing that is kept or sent can have them."""
    for part in response.parts:
        for name in ("content", "args"):
            value = getattr(part, name, None)
            if isinstance(value, str):
                setattr(part, name, value.encode("utf-8", "backslashreplace").decode())


async def _only_objects(_ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:  # noqa: ARG001 - the library's form
    """Have the model told that a tool takes one object, where it sent anything else that is JSON."""
    if isinstance(args, str):
        try:
            args = msgspec.json.decode(args or "{}")
        except msgspec.DecodeError as error:
            raise faults.ModelRetry(f"The arguments are no JSON: {error}.") from error
    if not isinstance(args, dict):
        raise faults.ModelRetry("The arguments must be one JSON object.")
    return args
