"""What the edge needs from the living side, as Protocols and values. Knows neither Falcon nor actors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from a2mcp.http.facts import HostLlmFacts
from a2mcp.inference.transcript import AgentFacts
from a2mcp.obtain.programs import ProgramFacts
from a2mcp.policy.grants import Grant, Word
from a2mcp.protocol.methods import Services
from a2mcp.tunnel.passage import TunnelFacts
from a2mcp.types import SessionId

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.http.facts import (
        Answered,
        AuditCall,
        CallFacts,
        EventsAsked,
        Finding,
        Gauges,
        Invitation,
        JobFacts,
        JobOutput,
        Search,
        SessionFacts,
        ShareFacts,
        WaitingApproval,
    )
    from a2mcp.observe.event import Event
    from a2mcp.observe.tally import Tally
    from a2mcp.protocol.exchange import Exchange, Reply
    from a2mcp.protocol.jsonrpc import Answer
    from a2mcp.protocol.response import Response
    from a2mcp.tunnel.providers import Wish


class AuditFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How the log is doing."""

    written: int
    """Records since the start."""
    failures: int
    """Records that could not be written."""
    last: int = 0
    """The number of the last record in the log, of earlier runs too; 0 when there is none."""
    hash: str = ""
    """Its hash, which stands for the log up to it."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A daemon in numbers, as ``a2mcp status`` shows it."""

    url: str
    """The standard dialect: ``http://host:port/mcp``."""
    bridge_url: str
    """The bridge dialect: ``http://host:port/``."""
    pid: int
    version: str
    started_at: str
    uptime_s: float
    token_prefix: str
    sessions: int
    calls_in_flight: int
    approvals_waiting: int
    jobs_running: int
    """Of the jobs that are listed, those that go on; a command whose call still waits for it is none yet."""
    orphans: int = 0
    """Jobs of a daemon that was killed which still run; they are not among the others."""
    audit: AuditFacts
    tunnel: TunnelFacts = TunnelFacts()
    agent: AgentFacts = AgentFacts()
    downloading: ProgramFacts | None = None
    """A program of others that is being fetched now."""
    host_llm: HostLlmFacts = HostLlmFacts()
    """Whether this host may ask models."""
    stopping: bool = False
    """Whether it takes no more calls and ends once those in flight have been answered."""


class Probe(Protocol):
    """What those ask who watch over the daemon. Nothing here waits."""

    def not_ready(self) -> str | None:
        """Why no calls are taken, in a word; None when they are."""
        ...

    def scrape(self, reply: Reply, write: Callable[[Tally, Gauges], Response]) -> None:
        """Complete a reply with the counts, as this function writes them."""
        ...


class OperatorPort(Protocol):
    """What the operator may ask of the daemon. Every method may wait for an actor, up to a few seconds."""

    def status(self) -> Status:
        """Tell how the daemon is doing."""
        ...

    def token(self) -> str:
        """Return the token in force."""
        ...

    def rotate(self) -> str:
        """Make, keep and return a new token; the old one is dead at once."""
        ...

    def approvals(self) -> tuple[WaitingApproval, ...]:
        """List the calls that wait for the operator, oldest first."""
        ...

    def answer(self, approval_id: str, word: Word) -> Answered:
        """Let a waiting call go on, or end it with the reason.

        Raises:
            A2mcpError: no such call waits, somebody else was faster, or it cannot be granted so far.
        """
        ...

    def grants(self) -> tuple[Grant, ...]:
        """List what is allowed beyond one call."""
        ...

    def revoke(self, grant_id: str) -> Grant | None:
        """Have a tool asked about again; None when there is no such grant."""
        ...

    def events(self, asked: EventsAsked) -> tuple[Event, ...]:
        """Return kept events: those after a number, or the last ones."""
        ...

    def calls(self) -> tuple[CallFacts, ...]:
        """List the calls in flight, oldest first."""
        ...

    def cancel_call(self, call_id: str) -> bool:
        """End a call in flight, and what runs for it; False when there is none."""
        ...

    def sessions(self) -> tuple[SessionFacts, ...]:
        """List the sessions, the one unseen for longest first."""
        ...

    def end_session(self, session_id: str) -> bool:
        """End a session; its calls go on. False when there is none."""
        ...

    def stop_job(self, job_id: str) -> None:
        """Begin to end a command.

        Raises:
            ToolError: there is no such job.
        """
        ...

    def job_output(self, job_id: str, stream: str, offset: int) -> JobOutput:
        """Read what a command has written; a negative offset counts from the end.

        Raises:
            ToolError: there is no such job.
        """
        ...

    def search(self, wanted: Search) -> tuple[AuditCall, ...]:
        """Look into the audit log, the newest last."""
        ...

    def jobs(self) -> tuple[JobFacts, ...]:
        """List the commands that outlived their calls."""
        ...

    def tunnel(self) -> TunnelFacts:
        """Tell how the tunnel is doing."""
        ...

    def open_tunnel(self, wish: Wish) -> TunnelFacts:
        """Begin to open the tunnel; one that is open is left as it is."""
        ...

    def close_tunnel(self) -> TunnelFacts:
        """Begin to close the tunnel."""
        ...

    def host_llm(self) -> HostLlmFacts:
        """Tell whether this host may ask models, and which it would."""
        ...

    def switch_host_llm(self, *, enabled: bool) -> HostLlmFacts:
        """Let this host ask models, or deny it; how that stands then.

        Raises:
            CannotDeny: it was not turned.
        """
        ...

    def programs(self) -> tuple[ProgramFacts, ...]:
        """Tell where the programs of others are, or how far a download is."""
        ...

    def obtain(self, program: str) -> bool:
        """Begin to find or fetch a program; False when none has that name."""
        ...

    def share(self) -> ShareFacts | None:
        """Tell what is shared."""
        ...

    def stop_share(self) -> bool:
        """End the share; False when there is none."""
        ...

    def stop_transfer(self, transfer: str) -> bool:
        """End what is being moved through the share; False when it is not under way."""
        ...

    def doctor(self) -> tuple[Finding, ...]:
        """Look for what is wrong."""
        ...

    def invite(self) -> Invitation:
        """Make a link to the operator's page."""
        ...

    def stop(self) -> None:
        """Ask the daemon to drain and exit; returns at once."""
        ...


class FrontPort(Protocol):
    """The way from the edge to the actors.

    Each method hands the exchange over and returns at once; whoever gets it last completes it. Each raises ``Busy``
    when too much waits already, and ``Stopping`` while the daemon goes down.
    """

    def open_session(self, exchange: Exchange, encoded: bytes) -> None:
        """Answer with this result and a new session."""
        ...

    def end_session(self, exchange: Exchange) -> None:
        """End the exchange's session, if there is one, and answer 204."""
        ...

    def answer(self, exchange: Exchange, response: Response) -> None:
        """Answer with this response if the exchange's session is alive."""
        ...

    def call(self, exchange: Exchange, tool: str, arguments: msgspec.Raw) -> None:
        """Run a tool if the exchange's session is alive."""
        ...

    def catalog(self) -> bytes:
        """The JSON array of the tools that are offered now."""
        ...

    def cancel_requested(self, params: msgspec.Raw, session_id: SessionId | None = None) -> None:
        """Cancel the call of this session that ``notifications/cancelled`` names, if there is exactly one."""
        ...


class StandardPort(Services, Protocol):
    """What the standard dialect needs beside what its methods do."""

    def replied(self, answer: Answer) -> None:
        """Take a client's answer to a question of a tool."""
        ...

    def cancel_requested(self, params: msgspec.Raw) -> None:
        """Cancel the call that ``notifications/cancelled`` names, if there is exactly one."""
        ...


class Front(FrontPort, StandardPort, Protocol):
    """The whole of what the edge needs."""
