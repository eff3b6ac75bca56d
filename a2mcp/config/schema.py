"""What can be set, with defaults, limits and the words of every refusal.

Owns the names, types and ranges of the settings. Knows nothing of files: ``load`` brings a decoded JSON object here.
A field that is present but wrong stops the start; a field nobody knows is ignored with a warning.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.config import token as tokens
from a2mcp.errors import SettingsError
from a2mcp.policy.approval import ApprovalSettings, Mode, Rule
from a2mcp.tools.presets import TOOLS, Preset, ToolSettings
from a2mcp.xfer.settings import XferSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.types import JsonObject

    Check = Callable[[str, Any], Any]
    """Takes a field's dotted name and what the file says; returns the value or raises ``SettingsError``."""

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB


class LimitSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Caps. A request over one of them is refused with a clear error, never queued without end."""

    in_flight: int = 10_000
    """Calls that are running or waiting at one time."""
    connections: int = 4096
    sessions: int = 64
    body_bytes: int = 128 * MIB
    mcp_body_bytes: int = 8 * MIB
    """Of a request to ``/mcp``."""
    output_bytes: int = 50 * KIB
    """Text of one result."""
    job_bytes: int = 256 * MIB
    """Output that is kept on disk for one command."""


class AuditSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the audit log is written."""

    sync: bool = False
    """Wait until each group of records is on the disk itself."""


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
    approval: ApprovalSettings
    audit: AuditSettings = AuditSettings()
    limits: LimitSettings = LimitSettings()
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
    for name, (checks, build) in _SECTIONS.items():
        values[name] = build(**_section(f"{name}.", values.get(name, {}), checks, warnings))
    settings = Settings(**values)
    if not is_loopback(settings.host):
        warnings.append(
            f"host '{settings.host}' can be reached from other machines: whoever has the token runs commands as you. "
            "The firewall is your responsibility; forwarding a port over SSH needs none."
        )
    if "bash" in settings.tools.names and "jobs" not in settings.tools.names:
        warnings.append("tool 'jobs' is off and 'bash' is not: nobody can follow a command that outlives its 'wait'")
    return settings, warnings


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a listener on ``host``. A name other than localhost is taken as not."""
    if host.lower() in {"127.0.0.1", "localhost", "::1"}:
        return True
    import ipaddress  # noqa: PLC0415 - the usual hosts are known without it

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def field_names() -> tuple[str, ...]:
    """Name every field that a file may have, dotted, in the order of their checks: what a reference must list."""
    plain = [name for name in _TOP if name not in _SECTIONS]
    inner = [f"{section}.{name}" for section, (checks, _) in _SECTIONS.items() for name in checks]
    return (*plain, *inner)


def _section(prefix: str, given: JsonObject, checks: dict[str, Check], warnings: list[str]) -> dict[str, Any]:
    """Check one object's fields. An absent field is left to its default; an unknown one is reported."""
    warnings.extend(_unknown(prefix + name, name, checks) for name in given if name not in checks)
    return {name: check(prefix + name, given[name]) for name, check in checks.items() if name in given}


def _unknown(dotted: str, name: str, known: dict[str, Check]) -> str:
    import difflib  # noqa: PLC0415 - for a field that is wrong only

    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"unknown field '{dotted[:80]}' is ignored{hint}"


# --- checks: what a field may hold -------------------------------------------------------------------------------


def _token(_field: str, value: str) -> str:
    return tokens.check(value)


def _integer(low: int, high: int) -> Check:
    def check(field: str, value: object) -> int:
        # bool is an int in Python and is not one in JSON.
        if type(value) is not int or not low <= value <= high:
            raise SettingsError(field, f"must be an integer from {low} to {high}")
        return value

    return check


def _seconds(low: int, high: int) -> Check:
    def check(field: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise SettingsError(field, f"must be a number of seconds from {low} to {high}")
        return float(value)

    return check


def _boolean(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SettingsError(field, "must be true or false")
    return value


def _text(field: str, value: object) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise SettingsError(field, "must be a non-empty string")
    return value


def _one_of(*words: str) -> Check:
    def check(field: str, value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise SettingsError(field, "must be " + " or ".join(f"'{word}'" for word in words))
        return value

    return check


_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def _host(field: str, value: object) -> str:
    host = _text(field, value)
    if not _HOST.fullmatch(host) and not _is_address(host):
        raise SettingsError(field, "must be a host name or an address, without scheme, port or brackets")
    return host


def _is_address(host: str) -> bool:
    import ipaddress  # noqa: PLC0415 - host names and IPv4 are judged without it

    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _hosts(field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise SettingsError(field, "must be an array of host names")
    return tuple(_host(f"{field}[{index}]", item).lower() for index, item in enumerate(value))


def _folder(field: str, value: object) -> Path:
    folder = Path(_text(field, value))
    if folder.parts[0] == "~":
        folder = Path.home().joinpath(*folder.parts[1:])
    # os.path answers False where a path is too long to be asked about; Path.is_dir raises.
    if not folder.is_absolute() or not os.path.isdir(folder):  # noqa: PTH112
        raise SettingsError(field, "must be the absolute path of a folder that exists")
    return folder


def _object(field: str, value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise SettingsError(field, "must be an object")
    return value


def _mode(field: str, value: object) -> Mode:
    return Mode(_one_of(*Mode)(field, value))


def _rules(field: str, value: object) -> dict[str, Rule]:
    rule = _one_of(*Rule)
    return {
        _text(field, name): Rule(rule(f"{field}.{name[:80]}", word)) for name, word in _object(field, value).items()
    }


def _preset(field: str, value: object) -> Preset:
    return Preset(_one_of(*Preset)(field, value))


def _tool_names(field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise SettingsError(field, "must be an array of names of tools")
    name = _one_of(*TOOLS[Preset.FULL])
    return tuple(name(f"{field}[{index}]", item) for index, item in enumerate(value))


def _approval(
    *, mode: Mode = Mode.YOLO, tools: dict[str, Rule] | None = None, ask_caller: bool = False
) -> ApprovalSettings:
    return ApprovalSettings(mode=mode, tools=tools or {}, ask_caller=ask_caller)


_SECTIONS: Final[dict[str, tuple[dict[str, Check], Callable[..., Any]]]] = {
    "approval": ({"mode": _mode, "tools": _rules, "ask_caller": _boolean}, _approval),
    "audit": ({"sync": _boolean}, AuditSettings),
    "limits": (
        {
            "in_flight": _integer(1, 1_000_000),
            "connections": _integer(1, 1_000_000),
            "sessions": _integer(1, 1_000_000),
            "body_bytes": _integer(KIB, 2 * GIB),
            "mcp_body_bytes": _integer(KIB, 64 * MIB),
            "output_bytes": _integer(KIB, 64 * MIB),
            "job_bytes": _integer(KIB, 1024 * GIB),
        },
        LimitSettings,
    ),
    "tools": ({"preset": _preset, "off": _tool_names}, ToolSettings),
    "xfer": (
        {
            "server": _one_of("auto", "embedded", "dufs"),
            "overwrite": _boolean,
            "zip": _boolean,
            "hash": _boolean,
            "stall_s": _seconds(1, 3600),
            "upload_bytes": _integer(KIB, 1024 * GIB),
            "dufs": _text,
            "cloudflared": _text,
        },
        XferSettings,
    ),
}

_TOP: Final[dict[str, Check]] = {
    "port": _integer(0, 65535),
    "host": _host,
    "token": _token,
    "host_llm": _one_of("deny", "allow"),
    "allowed_hosts": _hosts,
    "cwd": _folder,
    "drain_s": _seconds(0, 3600),
    **dict.fromkeys(_SECTIONS, _object),
}
