"""What the executor stands on: the rest of the daemon, and the calls that it remembers across restarts."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from a2mcp.library.desk import Desk
from a2mcp.policy.approval import ApprovalSettings
from a2mcp.policy.grants import Grants
from a2mcp.protocol.interviews import Interviews
from a2mcp.tools.call import Call
from a2mcp.tools.context import Context
from a2mcp.tools.registry import Registry
from a2mcp.types import CallId
from actors import audit, gate, jobs
from actors.ref import Ref


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


class Running(msgspec.Struct, frozen=True):
    """The calls in flight by our id. Outlives the actor, so that a restart forgets none."""

    calls: dict[CallId, Call] = msgspec.field(default_factory=dict)
