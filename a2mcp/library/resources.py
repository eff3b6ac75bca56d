"""The product's own resources: how the daemon is, who uses it, what was done, what commands said.

Owns the addresses that begin with ``a2mcp://``. Everything is asked of the living side through ``Views``, which may
wait for an actor; files are ``filespace``'s.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.errors import NoSuchResource, ToolError
from a2mcp.library import filespace
from a2mcp.library.spec import ResourceSpec, TemplateSpec
from a2mcp.tools.commandtext import command_result
from a2mcp.tools.result import OURS, ResourceContents
from a2mcp.types import JobId, SessionId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from a2mcp.audit.record import Record
    from a2mcp.host.run import Report
    from a2mcp.library.spec import PromptResult, PromptSpec
    from a2mcp.tools.context import Context
    from a2mcp.types import JsonObject

TAIL: Final = 100
"""Records of the audit log in one resource."""

STATUS: Final = OURS + "status"
SESSIONS: Final = OURS + "sessions"
AUDIT: Final = OURS + "audit"
SESSION: Final = OURS + "session/{id}"
JOB_OUTPUT: Final = OURS + "jobs/{id}/output"

_JSON: Final = "application/json"
_LINES: Final = "application/x-ndjson"
_TEXT: Final = "text/plain"
_SESSION: Final = re.compile(re.escape(OURS) + "session/([0-9a-zA-Z-]{1,64})")
_JOB: Final = re.compile(re.escape(OURS) + "jobs/([a-z0-9]{1,32})/output")

_FIXED: Final = (
    ResourceSpec(
        uri=STATUS,
        name="status",
        title="How the daemon is",
        description="Version, uptime, and how many sessions, calls, approvals and jobs there are.",
        mime_type=_JSON,
    ),
    ResourceSpec(
        uri=SESSIONS,
        name="sessions",
        title="Sessions of the bridge and of the agent",
        description="Of the bridge: which are alive, and for how many seconds each was not seen. Of the agent: all "
        "that are kept, how each stands and what it cost.",
        mime_type=_JSON,
    ),
    ResourceSpec(
        uri=AUDIT,
        name="audit",
        title="The end of the audit log",
        description=f"The last {TAIL} records, one JSON object a line, oldest first.",
        mime_type=_LINES,
    ),
)
_TEMPLATES: Final = (
    TemplateSpec(
        uri_template=SESSION,
        name="session",
        title="One session of the bridge or of the agent",
        description=f"Whether it is alive, and its last {TAIL} audit records; of the agent also how it stands, and the "
        f"last {TAIL} entries of its transcript.",
        mime_type=_JSON,
    ),
    TemplateSpec(
        uri_template=JOB_OUTPUT,
        name="job-output",
        title="Output of a job",
        description="What a command that became a job has printed so far, cut in the middle, and how it stands.",
        mime_type=_TEXT,
    ),
)


class Views(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown, by whoever knows it. Each may wait for an actor, up to a few seconds."""

    status: Callable[[], JsonObject]
    sessions: Callable[[], Sequence[tuple[SessionId, float]]]
    agents: Callable[[], Sequence[JsonObject]]
    """The sessions of the agent."""
    agent: Callable[[SessionId, int], JsonObject | None]
    """One of them, with so many entries of its transcript; None where there is none."""
    job: Callable[[JobId], Report]
    """Raises ``ToolError`` for a job that does not exist."""
    audit: Path
    secret: Callable[[], str]
    """The token in force, so that it can be left out."""


class Resources:
    """The shelf of this daemon's own resources, and of this machine's files.

    Args:
        views: where to ask.
        files: whether files can be read.
    """

    def __init__(self, views: Views, *, files: bool) -> None:
        self._views = views
        self._files = files

    def resources(self) -> Sequence[ResourceSpec]:
        """Three; files are not listed."""
        return _FIXED

    def templates(self) -> Sequence[TemplateSpec]:
        """Sessions, jobs, and files where they can be read."""
        return (*_TEMPLATES, filespace.TEMPLATE) if self._files else _TEMPLATES

    def read(self, uri: str, context: Context) -> tuple[ResourceContents, ...] | None:
        """Read one of them."""
        if self._files and uri[: len(filespace.SCHEME)].lower() == filespace.SCHEME:
            return (filespace.read(uri, context),)
        if not uri.startswith(OURS):
            return None
        kind, text = self._own(uri, context)
        # SECURITY: a caller that put the token on a command line finds it neither in the log's tail nor in an output.
        return (ResourceContents(uri=uri, mime_type=kind, text=text.replace(self._views.secret(), "<token>")),)

    def _own(self, uri: str, context: Context) -> tuple[str, str]:
        if uri == STATUS:
            return _JSON, _json(self._views.status())
        if uri == SESSIONS:
            alive = [_seen(*session) for session in self._views.sessions()]
            return _JSON, _json({"sessions": alive, "agents": self._views.agents()})
        if uri == AUDIT:
            return _LINES, _lines(self._records())
        if found := _SESSION.fullmatch(uri):
            return _JSON, self._session(uri, SessionId(found[1]))
        if found := _JOB.fullmatch(uri):
            return _TEXT, self._job(uri, JobId(found[1]), context)
        raise NoSuchResource(uri)

    def _session(self, uri: str, session: SessionId) -> str:
        alive = dict(self._views.sessions())
        records = self._records(session)
        agent = self._views.agent(session, TAIL)
        if agent is not None:
            return _json({"id": session, **agent, "records": list(records)})
        if session not in alive and not records:
            raise NoSuchResource(uri)
        return _json({"id": session, "alive": session in alive, "idleS": alive.get(session), "records": list(records)})

    def _job(self, uri: str, job: JobId, context: Context) -> str:
        try:
            report = self._views.job(job)
        except ToolError as error:
            raise NoSuchResource(uri) from error
        result = command_result(report, output_bytes=context.limits.output_bytes)
        return "".join(getattr(block, "text", "") for block in result.content)

    def _records(self, session: SessionId | None = None) -> deque[Record]:
        from a2mcp.audit import query  # noqa: PLC0415 - a daemon starts without reading its log

        try:
            found = query.records(self._views.audit, query.Filter(session=session))
            # A filter takes the beginning of an id, an address names one session.
            return deque((record for record in found if session in (None, record.sid)), maxlen=TAIL)
        except OSError as error:
            raise ToolError(f"The audit log cannot be read: {error.strerror}.") from error

    def prompts(self) -> Sequence[PromptSpec]:
        """None."""
        return ()

    def prompt(self, name: str, arguments: dict[str, str], context: Context) -> PromptResult:
        """Never called: there are none."""
        raise NotImplementedError

    def complete(self, name: str, argument: str, value: str) -> Sequence[str]:  # noqa: ARG002
        """Nothing: finding names would wait for an actor or a disk."""
        return ()

    def attach(self, announce: Callable[[str], None]) -> None:
        """What there is never changes."""


def _seen(session: SessionId, idle_s: float) -> JsonObject:
    return {"id": session, "idleS": round(idle_s, 3)}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _lines(records: Iterable[Record]) -> str:
    return "".join(f"{_json(record)}\n" for record in records)
