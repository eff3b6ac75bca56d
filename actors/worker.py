"""A worker: runs one blocking tool at a time. The place where a tool's code meets the actors."""

from __future__ import annotations

from typing import Any, ClassVar

from a2mcp.errors import A2mcpError
from a2mcp.tools import call as calls
from a2mcp.tools.call import Call
from a2mcp.tools.context import Context
from a2mcp.tools.registry import Entry
from a2mcp.tools.result import PENDING, Needs, text
from a2mcp.types import CallId
from actors import audit
from actors.kit import Actor
from actors.ref import Mailbox, Message, Ref


class Run(Message, frozen=True):
    """Run the tool of a call."""

    call: Call
    entry: Entry
    context: Context
    audit_writer: Ref[audit.Command]

    def failed(self, error: A2mcpError) -> None:
        """End the call, which has a start, with the error."""
        audit.finish(self.audit_writer, self.call, text(str(error), is_error=True))


class Returned(Message, frozen=True):
    """Told to the executor: this worker is free, and its call has ended unless it is pending or needs answers."""

    worker: Worker
    call_id: CallId
    pending: bool = False
    needs: Needs | None = None


class Worker(Actor[Run]):
    """One thread of the executor's pool."""

    MAILBOX: ClassVar[int] = 2

    def __init__(self, mailbox: Mailbox, *, run_calls: Ref[Any]) -> None:
        super().__init__(mailbox)
        self._executor = run_calls
        self.idle_since = 0.0

    def receive(self, message: Run) -> None:
        """Run the tool; record and answer, unless another actor will."""
        call = message.call
        returned = Returned(self, call.call_id)
        try:
            if call.has_ended():  # While it waited for a worker: what was answered must not happen afterwards.
                return
            outcome = calls.run(message.entry, call, message.context)
            if outcome is PENDING:
                returned = Returned(self, call.call_id, pending=True)
            elif isinstance(outcome, Needs):
                returned = Returned(self, call.call_id, needs=outcome)
            else:
                audit.finish(message.audit_writer, call, outcome)
        finally:
            self._executor.insist(returned)
