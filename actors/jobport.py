"""The way to the jobs actor for tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from a2mcp.tools.context import SILENT
from a2mcp.tools.result import PENDING, Pending
from actors.jobs import JobsMessage, Serve, Started

if TYPE_CHECKING:
    from a2mcp.host.jobroom import JobRoom
    from a2mcp.host.process import Child
    from a2mcp.tools.context import Teller, Ticket
    from a2mcp.tools.jobs import JobsParams
    from actors.ref import Ref


class Port:
    """The way to the actor for tools: a ``JobsPort``.

    Args:
        ref: the actor.
        room: what commands share.
    """

    def __init__(self, ref: Ref[JobsMessage], room: JobRoom) -> None:
        self._ref = ref
        self._room = room

    def take_place(self) -> None:
        """Take a place for a command that is about to be started."""
        self._room.take()

    def give_place_back(self) -> None:
        """Give it back because the command was not started, or not handed over."""
        self._room.give_back()

    def start(self, ticket: Ticket, child: Child, tell: Teller = SILENT) -> Literal[Pending.PENDING]:
        """Look after a started command; the call completes when it ends, or is handed back as a job."""
        self._ref.tell(Started(ticket, child, tell))
        return PENDING

    def serve(self, ticket: Ticket, params: JobsParams, tell: Teller = SILENT) -> Literal[Pending.PENDING]:
        """Answer one ``jobs`` call."""
        self._ref.tell(Serve(ticket, params, tell))
        return PENDING
