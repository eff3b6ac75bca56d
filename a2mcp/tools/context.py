"""What a running tool may reach: everything comes through its context; it imports no actor and reads no setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from a2mcp.clock import Clock
    from a2mcp.host.process import Child
    from a2mcp.tools.agents import AgentParams
    from a2mcp.tools.jobs import JobsParams
    from a2mcp.tools.result import Pending
    from a2mcp.tools.sampling import Sampled
    from a2mcp.types import CallId, JsonObject, SessionId


class Ticket(Protocol):
    """One call, as a tool sees it: enough to name it and to hand it to a port that completes it."""

    @property
    def call_id(self) -> CallId:
        """Our id of the call."""
        ...

    @property
    def session_id(self) -> SessionId | None:
        """The session it came on, if the dialect has sessions."""
        ...


class JobsPort(Protocol):
    """The way to the actor that owns running commands. Nothing here blocks; two methods take over the ticket."""

    def take_place(self) -> None:
        """Take a place for a command that is about to be started.

        Raises:
            ToolError: as many run as may.
        """
        ...

    def give_place_back(self) -> None:
        """Give it back because the command was not started, or not handed over."""
        ...

    def start(self, ticket: Ticket, child: Child, tell: Teller = ...) -> Literal[Pending.PENDING]:
        """Look after a started command; the call completes when it ends, or is handed back as a job.

        Its progress is told to ``tell`` until then.

        The command was started by the caller, in its own thread: starting takes longer than all the looking after.
        When this raises, the child is still the caller's.
        """
        ...

    def serve(self, ticket: Ticket, params: JobsParams, tell: Teller = ...) -> Literal[Pending.PENDING]:
        """Answer one ``jobs`` call; while it waits, the progress of the job is told to ``tell``."""
        ...


class XferPort(Protocol):
    """The way to the actor that owns the one share. Each method takes over the ticket and waits for nobody."""

    def share(self, ticket: Ticket, path: Path, ttl_s: int, cancelled: Callable[[], bool]) -> Literal[Pending.PENDING]:
        """Open a path here, in the caller's thread, and have it shared, unless the call is cancelled before.

        Raises:
            ToolError: it cannot be opened.
        """
        ...

    def status(self, ticket: Ticket) -> Literal[Pending.PENDING]:
        """Say what is shared."""
        ...

    def stop(self, ticket: Ticket) -> Literal[Pending.PENDING]:
        """Close the share."""
        ...


class AgentsPort(Protocol):
    """The way to the actor that looks after the sessions of agents. Takes over the ticket and never blocks."""

    def serve(self, ticket: Ticket, params: AgentParams, tell: Teller = ...) -> Literal[Pending.PENDING]:
        """Answer one call of a tool ``agent_…``."""
        ...

    def sample(self, ticket: Ticket, asked: Sampled) -> Literal[Pending.PENDING]:
        """Answer what a tool asked of a model."""
        ...


class Teller(Protocol):
    """The way to the caller while the call runs. Nothing here blocks; what the caller did not ask for is dropped."""

    @property
    def wants_progress(self) -> bool:
        """Whether progress goes anywhere; spares the work of finding it out."""
        ...

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress; a value that is not higher than the last one is not sent."""
        ...

    def log(self, level: str, data: Any) -> None:
        """Send a log message."""
        ...


class Silent:
    """Tells nobody anything."""

    wants_progress = False

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Drop it."""

    def log(self, level: str, data: Any) -> None:
        """Drop it."""


SILENT: Final = Silent()


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Caps that tools keep to."""

    output_bytes: int = 50 * 1024
    """Text of one result; more is cut in the middle."""
    job_bytes: int = 256 * 1024 * 1024
    """Output kept on disk for one command; more is dropped and said so."""
    jobs: int = 1024
    """Commands that run at one time."""
    kept_jobs: int = 64
    """Ended jobs that are kept."""
    kept_bytes: int = 1024 * 1024 * 1024
    """Output kept on disk for all commands, running and ended."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a tool may use beside its parameters."""

    ticket: Ticket
    cwd: Path
    """The host's working directory: relative paths start here."""
    home: Path
    """The folder of this daemon's own files, of which children get nothing."""
    limits: Limits
    jobs: JobsPort
    clock: Clock
    xfer: XferPort | None = None
    """None where nothing can be shared."""
    agents: AgentsPort | None = None
    """None where nobody could run any."""
    cancelled: Callable[[], bool] = lambda: False
    """True once nobody waits for the result; a long loop asks it now and then."""
    tell: Teller = SILENT
    """How to say something to the caller before the result is there."""
    answers: JsonObject = {}
    """What the caller has answered so far; see ``asking``."""
    capabilities: JsonObject | None = None
    """What the caller can be asked for, as it declares it; None where the dialect does not say."""
    state: str | None = None
    """What the tool itself gave with its last questions."""
