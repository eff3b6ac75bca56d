"""Questions of tools to a model, while they are asked: each in the loop of the turns, and no thread waits for it.

A table and no actor: each change is one dict operation, which the interpreter makes atomic.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec

from a2mcp.errors import A2mcpError, MissingExtra, ToolError
from a2mcp.tools.result import PENDING, SAMPLE, Encoded, Pending, text
from a2mcp.types import SessionId
from actors.hands import Hands

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.inference.ledger import Spent
    from a2mcp.inference.runner import Step
    from a2mcp.tools.context import Ticket
    from a2mcp.tools.result import Result
    from a2mcp.tools.sampling import Sampled
    from a2mcp.types import CallId
    from actors.turnrunner import Services
    from actors.turns import Run

    Complete = Callable[[Ticket, Result | Encoded], None]

MOST = 64
"""Questions at one time."""

logger = logging.getLogger("a2mcp.inference")


class Samples:
    """The questions that are asked now.

    Args:
        services: what they are asked with.
        complete: completes a call.
        spent: is told what each has cost.
    """

    def __init__(self, services: Services, complete: Complete, spent: Callable[[Spent], None]) -> None:
        self._services = services
        self._complete = complete
        self._spent = spent
        self._runs: dict[CallId, Run] = {}

    def begin(self, ticket: Ticket, asked: Sampled) -> Literal[Pending.PENDING]:
        """Have it asked; the call is completed with the answer.

        Raises:
            CannotInfer: no model may or can be asked.
            ToolError: too many are asked already.
        """
        self._services.admission.check(None)
        if len(self._runs) >= MOST:
            raise ToolError(f"{MOST} questions to models are open.", hint="Try again in a moment.")
        services = self._services
        hands = Hands(
            SessionId(SAMPLE), None, services.admission, services.call_tool, services.retries_now, self._stepped
        )
        try:
            self._runs[ticket.call_id] = self._services.turns.begin(
                partial(self._work, ticket, asked, hands), partial(self._end, ticket, "The question was withdrawn.")
            )
        except RuntimeError as cause:
            raise ToolError("The machine has no thread left for this question.") from cause
        return PENDING

    def withdraw(self, call_id: CallId) -> None:
        """End a question that nobody waits for any more."""
        run = self._runs.get(call_id)
        if run is not None:
            run.cancel()

    async def _work(self, ticket: Ticket, asked: Sampled, hands: Hands) -> None:
        outcome: Encoded | str = "The question was withdrawn."
        try:
            from a2mcp.inference import providers, sample  # noqa: PLC0415 - needs the extra, and takes a second

            async with providers.connections():
                outcome = Encoded(msgspec.json.encode(await sample.sample(asked, hands)))
        except ImportError as error:
            outcome = str(MissingExtra(error))
        except A2mcpError as error:
            outcome = str(error)
        finally:
            self._end(ticket, outcome)

    def _end(self, ticket: Ticket, outcome: Encoded | str) -> None:
        self._runs.pop(ticket.call_id, None)
        self._complete(ticket, text(outcome, is_error=True) if isinstance(outcome, str) else outcome)

    def _stepped(self, step: Step) -> None:
        self._spent(step.spent)
