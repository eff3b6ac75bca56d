"""What the operator is told and may ask, beside what ``ports`` has: values only."""

from __future__ import annotations

import msgspec

from a2mcp.observe.event import Wanted
from a2mcp.policy.grants import Grant
from a2mcp.types import CallId, SessionId
from a2mcp.xfer.transfers import Direction, Running


class CallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A call in flight."""

    call_id: CallId
    """What cancels it."""
    tool: str
    args: msgspec.Raw
    """The arguments as the audit log has them."""
    client: str | None
    session_id: SessionId | None
    elapsed_s: float
    waiting: bool
    """Whether it waits for the operator."""


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A session of the bridge."""

    id: SessionId
    idle_s: float
    calls: int
    """Calls in flight."""


class WaitingApproval(msgspec.Struct, frozen=True, kw_only=True):
    """A call that goes on once the operator says so."""

    id: str
    """What the operator types."""
    call_id: CallId
    tool: str
    args: str
    """The arguments as JSON, shortened: what the operator judges by."""
    session_id: SessionId | None
    waiting_s: float
    client: str | None = None


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the operator's word about a waiting call."""

    id: str
    approved: bool
    grant: Grant | None = None
    also: int = 0
    """Other waiting calls that the grant let go on."""


class JobOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what a command has written."""

    id: str
    stream: str
    text: str
    """Undecodable bytes are replaced."""
    offset: int
    next: int
    """Where to go on reading."""
    size: int
    """Bytes kept until now."""


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A command that outlived its call."""

    id: str
    command: str
    state: str
    pid: int | None
    """The shell's, also when it has ended."""
    processes: tuple[int, ...] = ()
    """What runs for it now, as far as that is known."""
    started_at: str
    exit_code: int | None
    output_bytes: int


class AuditCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call, or what is not a call, in the audit log."""

    id: str
    session: str | None
    client: str | None
    tool: str
    started: str | None
    ended: str | None
    seconds: float | None
    outcome: str
    """``ok``, ``error``, ``cancelled``, ``aborted``, ``unfinished``, or ``-`` for what is not a call."""
    args: msgspec.Raw


class ShareFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is shared."""

    path: str
    is_file: bool
    url: str
    public_url: str | None
    """The same from elsewhere, while a tunnel is open."""
    server: str
    """``embedded`` or ``dufs``."""
    started_at: str
    expires_at: str
    left_s: float
    """Seconds until it ends by itself."""
    transfers: tuple[Running, ...]
    """What is being moved, the oldest first."""


class HostLlmFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Whether this host may ask models."""

    enabled: bool = True
    denied: int = 0
    """Requests to models that were refused since the start of the process."""
    degraded: bool = False
    """Whether it is denied, but a provider that came later cannot be."""
    model: str | None = None
    """The chosen model, as ``provider/id``; None where there is none that could be asked."""


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """A link to the operator's page that works once."""

    url: str
    valid_s: float
    """How long it waits to be followed."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of ``doctor``."""

    name: str
    verdict: str
    """``ok``, ``warn`` or ``FAIL``."""
    fact: str
    mend: str = ""
    """What to do; empty when nothing need be done."""


class EventsAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events somebody wants; what is None does not matter."""

    after: int | None = None
    """Those behind this number, oldest first; None for the last ones."""
    limit: int = 100
    tool: str | None = None
    status: str | None = None
    session: str | None = None
    path: str | None = None
    kind: str | None = None

    @property
    def wanted(self) -> Wanted:
        """Which events it chooses."""
        return Wanted(tool=self.tool, status=self.status, session=self.session, path=self.path, kind=self.kind)


class Search(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is looked for in the audit log; what is None does not matter."""

    tool: str | None = None
    session: str | None = None
    outcome: str | None = None
    text: str | None = None
    """Anywhere in the record, in any case."""
    last: int = 100


class Gauges(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured rather than counted from events."""

    version: str
    mailboxes: dict[str, int]
    shared: dict[Direction, int]
    """Bytes through the share."""
    plain: dict[str, float]
    """By the name of the metric."""
    agent_tokens: dict[str, int]
    """What models counted, ``input`` and ``output``."""
