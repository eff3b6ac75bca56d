"""What can be set, with defaults, limits and the words of every refusal.

Owns the names, types and ranges of the settings. Knows nothing of files: ``load`` brings a decoded JSON object here.
A field that is present but wrong stops the start; a field nobody knows is ignored with a warning.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.auth.origin import is_loopback
from a2mcp.config import checks
from a2mcp.config import token as tokens
from a2mcp.inference.settings import AgentSettings
from a2mcp.policy.approval import ApprovalSettings, Rule
from a2mcp.tools.presets import ToolSettings
from a2mcp.xfer.settings import XferSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.config.checks import Check
    from a2mcp.types import JsonObject

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB


class LimitSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Caps. A request over one of them is refused with a clear error, never queued without end."""

    in_flight: int = 10_000
    """Calls that are running or waiting at one time."""
    in_flight_each: int | None = None
    """Those of one session of the bridge, or of one client of ``/mcp``; None for half of all."""
    connections: int = 12_288
    unauthenticated: int = 2048
    """Those of them on which nobody has shown the token yet."""
    sessions: int = 64
    body_bytes: int = 128 * MIB
    mcp_body_bytes: int = 8 * MIB
    """Of a request to ``/mcp``."""
    output_bytes: int = 50 * KIB
    """Text of one result."""
    jobs: int = 1024
    """Commands that run at one time."""
    job_bytes: int = 256 * MIB
    """Output that is kept on disk for one command."""
    kept_jobs: int = 64
    """Ended jobs that are kept."""
    kept_bytes: int = GIB
    """Output that is kept on disk for all commands, running and ended."""


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the audit log is written."""

    sync: bool = False
    """Wait until each group of records is on the disk itself."""
    bytes: int = MIB
    """Of the log with its older generation."""


class ObserveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator is shown, and what shows it."""

    events: int = 200_000
    """How many are kept."""
    metrics: bool = True
    """Whether ``/metrics`` answers."""
    notify: str = "auto"
    """Whether a call that waits raises a notice on the desktop: ``auto``, ``on`` or ``off``."""
    traces: bool = False
    """Whether calls are told to OpenTelemetry."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the operator decided."""

    token: str
    port: int | None = None
    """None: choose a free port once and keep it. 0: another one at every start."""
    host: str = "127.0.0.1"
    host_llm: str = "allow"
    """Whether the host may call a model when it starts: ``allow`` or ``deny``."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names, beside the loopback ones and ``host``, that a request may come under."""
    cwd: Path | None = None
    """Where relative paths start; None is the folder the daemon was started in."""
    drain_s: float = 30.0
    """How long calls in flight may go on after a request to stop."""
    one_processor: bool = True
    """Whether the daemon keeps its own threads on one processor; what it starts has all of them."""
    agent: AgentSettings = AgentSettings()
    approval: ApprovalSettings
    audit: AuditSettings = AuditSettings()
    limits: LimitSettings = LimitSettings()
    observe: ObserveSettings = ObserveSettings()
    tools: ToolSettings = ToolSettings()
    xfer: XferSettings = XferSettings()

    def __repr__(self) -> str:
        # SECURITY: the one that a struct writes by itself would put the token into any traceback or log line.
        return f"Settings(host={self.host!r}, port={self.port!r}, token={tokens.prefix(self.token)!r})"


def settings_from(document: JsonObject) -> tuple[Settings, list[str]]:
    """Turn the decoded file into settings.

    ``token`` must be there; ``load`` sees to that.

    Returns:
        The settings, and a warning for each thing that is allowed but unwise or unknown.

    Raises:
        SettingsError: the first field that is wrong.
    """
    warnings: list[str] = []
    values = _section("", document, _TOP, warnings)
    for name, (inner, build) in _SECTIONS.items():
        values[name] = build(**_section(f"{name}.", values.get(name, {}), inner, warnings))
    settings = Settings(**values)
    # A name other than localhost is taken for one that others can reach, too: nothing is looked up.
    if not is_loopback(settings.host.lower()):
        warnings.append(
            f"host '{settings.host}' can be reached from other machines: whoever has the token runs commands as you. "
            "The firewall is your responsibility; forwarding a port over SSH needs none."
        )
    if "bash" in settings.tools.names and "jobs" not in settings.tools.names:
        warnings.append("tool 'jobs' is off and 'bash' is not: nobody can follow a command that outlives its 'wait'")
    return settings, warnings


def field_names() -> tuple[str, ...]:
    """Name every field that a file may have, dotted, in the order of their checks: what a reference must list."""
    plain = [name for name in _TOP if name not in _SECTIONS]
    inner = [f"{section}.{name}" for section, (fields, _) in _SECTIONS.items() for name in fields]
    return (*plain, *inner)


def _section(prefix: str, given: JsonObject, known: dict[str, Check], warnings: list[str]) -> dict[str, Any]:
    """Check one object's fields. An absent field is left to its default; an unknown one is reported."""
    warnings.extend(_unknown(prefix + name, name, known) for name in given if name not in known)
    return {name: check(prefix + name, given[name]) for name, check in known.items() if name in given}


def _unknown(dotted: str, name: str, known: dict[str, Check]) -> str:
    import difflib  # noqa: PLC0415 - for a field that is wrong only

    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"unknown field '{dotted[:80]}' is ignored{hint}"


# --- which field may hold what ------------------------------------------------------------------------------------


def _approval(*, tools: dict[str, Rule] | None = None, **given: Any) -> ApprovalSettings:
    return ApprovalSettings(tools=tools or {}, **given)


_SECTIONS: Final[dict[str, tuple[dict[str, Check], Callable[..., Any]]]] = {
    "agent": (
        {
            "wake": checks.boolean,
            "running": checks.integer(1, 64),
            "steps": checks.integer(1, 1000),
            "retries": checks.integer(0, 10),
            "budget_tokens": checks.or_none(checks.integer(0, 10**12)),
            "budget_requests": checks.or_none(checks.integer(0, 10**9)),
            "kept_bytes": checks.integer(MIB, 1024 * GIB),
        },
        AgentSettings,
    ),
    "approval": (
        {
            "mode": checks.mode,
            "tools": checks.rules,
            "ask_caller": checks.boolean,
            "timeout_s": checks.or_none(checks.seconds(1, 7 * 24 * 3600)),
        },
        _approval,
    ),
    "audit": ({"sync": checks.boolean, "bytes": checks.integer(64 * KIB, 1024 * GIB)}, AuditSettings),
    "limits": (
        {
            "in_flight": checks.integer(1, 1_000_000),
            "in_flight_each": checks.or_none(checks.integer(1, 1_000_000)),
            "connections": checks.integer(1, 1_000_000),
            "unauthenticated": checks.integer(1, 1_000_000),
            "sessions": checks.integer(1, 1_000_000),
            "body_bytes": checks.integer(KIB, 2 * GIB),
            "mcp_body_bytes": checks.integer(KIB, 64 * MIB),
            "output_bytes": checks.integer(KIB, 64 * MIB),
            "jobs": checks.integer(1, 1_000_000),
            "job_bytes": checks.integer(KIB, 1024 * GIB),
            "kept_jobs": checks.integer(1, 10_000),
            "kept_bytes": checks.integer(KIB, 1024 * GIB),
        },
        LimitSettings,
    ),
    "observe": (
        {
            "events": checks.integer(1000, 10_000_000),
            "metrics": checks.boolean,
            "notify": checks.one_of("auto", "on", "off"),
            "traces": checks.boolean,
        },
        ObserveSettings,
    ),
    "tools": ({"preset": checks.preset, "off": checks.tool_names}, ToolSettings),
    "xfer": (
        {
            "server": checks.one_of("auto", "embedded", "dufs"),
            "overwrite": checks.boolean,
            "zip": checks.boolean,
            "hash": checks.boolean,
            "stall_s": checks.seconds(1, 3600),
            "upload_bytes": checks.integer(KIB, 1024 * GIB),
            "dufs": checks.text,
            "cloudflared": checks.text,
        },
        XferSettings,
    ),
}

_TOP: Final[dict[str, Check]] = {
    "port": checks.integer(0, 65535),
    "host": checks.host,
    "token": checks.token,
    "host_llm": checks.one_of("deny", "allow"),
    "allowed_hosts": checks.hosts,
    "cwd": checks.folder,
    "drain_s": checks.seconds(0, 3600),
    "one_processor": checks.boolean,
    **dict.fromkeys(_SECTIONS, checks.object_),
}
