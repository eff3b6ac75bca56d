"""The way to the agents, and to the models, for tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from a2mcp.tools.context import SILENT
from a2mcp.tools.result import PENDING, Pending
from actors.agents import Serve

if TYPE_CHECKING:
    from a2mcp.tools.agents import AgentParams
    from a2mcp.tools.context import Teller, Ticket
    from a2mcp.tools.sampling import Sampled
    from actors.agents import Command
    from actors.jobs import Finish
    from actors.ref import Ref
    from actors.samples import Samples


class Port:
    """An ``AgentsPort``.

    Args:
        ref: the actor that owns the sessions.
        finish: completes a call.
        samples: asks models for tools.
    """

    def __init__(self, ref: Ref[Command], finish: Finish, samples: Samples) -> None:
        self._ref = ref
        self._finish = finish
        self._samples = samples

    def serve(self, ticket: Ticket, params: AgentParams, tell: Teller = SILENT) -> Literal[Pending.PENDING]:
        """Answer one call of a tool ``agent_…``."""
        self._ref.tell(Serve(ticket, params, self._finish, tell))
        return PENDING

    def sample(self, ticket: Ticket, asked: Sampled) -> Literal[Pending.PENDING]:
        """Answer what a tool asked of a model."""
        return self._samples.begin(ticket, asked)
