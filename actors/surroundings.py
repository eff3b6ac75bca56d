"""What the executor stands on: the rest of the daemon, and the calls that it remembers across restarts."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from a2mcp.library.desk import Desk
from a2mcp.policy.approval import ApprovalSettings
from a2mcp.policy.grants import Grants
from a2mcp.protocol.interviews import Interviews
from a2mcp.tools.call import TOOLS_CALL, Call
from a2mcp.tools.context import Context
from a2mcp.tools.registry import Entry, Registry
from a2mcp.tools.result import SAMPLE
from a2mcp.tools.sampling import ENTRY
from a2mcp.types import CallId
from actors import audit, gate, jobs
from actors.ref import Ref
from actors.sampling import Sampling


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What the executor needs of the rest of the daemon."""

    registry: Registry
    approval: ApprovalSettings
    grants: Grants
    context_for: Callable[[Call], Context]
    audit_writer: Ref[audit.Command]
    gate: Ref[gate.Command]
    jobs: Ref[jobs.JobsMessage]
    interviews: Interviews
    desk: Desk
    sampling: Sampling
    withdraw: Callable[[CallId], None]
    """Has a question to a model ended that nobody waits for any more."""

    def entry(self, call: Call) -> Entry:
        """What runs for a call, and under which name it is allowed or denied.

        Raises:
            NotExposed: there is no such tool.
        """
        if call.method == TOOLS_CALL:
            return self.registry.require(call.tool)
        return ENTRY if call.method == SAMPLE else self.desk.entry(call.arguments)

    def let_go(self, call_id: CallId) -> None:
        """End what goes on for a call that has ended: questions, approvals and commands."""
        self.interviews.forget(call_id)
        self.sampling.forget(call_id)
        self.withdraw(call_id)
        gate.forget(self.gate, call_id)
        jobs.cancel(self.jobs, call_id)


class Running(msgspec.Struct, frozen=True):
    """The calls in flight by our id. Outlives the actor, so that a restart forgets none."""

    calls: dict[CallId, Call] = msgspec.field(default_factory=dict)
