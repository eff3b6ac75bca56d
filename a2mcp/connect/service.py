"""The daemon as a service of the user: a unit for systemd, a property list for launchd.

Writes texts and says with which commands they take effect; runs nothing itself. A daemon that dies is started again:
by systemd five times in five minutes and never after an error that starting again cannot mend (exit codes 2, 3 and 4),
by launchd, which knows no such limits, ten seconds later at the soonest.
"""

from __future__ import annotations

import os
import plistlib
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

UNIT: Final = "a2mcp.service"
LABEL: Final = "a2mcp"
_KEPT: Final = ("PATH", "A2MCP_HOME", "A2MCP_CONFIG", "A2MCP_AUDIT", "A2MCP_INSTALLS")
"""What of the environment the daemon needs: a service manager gives it neither our folders nor the shell's PATH."""

_AFTER_STOP_S: Final = 10
_RESTART_S: Final = 2
_LAUNCHD_RESTART_S: Final = 10


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a service manager and the commands that go with it."""

    path: Path
    text: str
    start: tuple[tuple[str, ...], ...]
    """Commands, in order, that make it run now and after every login."""
    stop: tuple[tuple[str, ...], ...]
    """Commands that end it, to be run while the file is there."""
    forget: tuple[tuple[str, ...], ...]
    """Commands to be run once it is gone."""
    note: str


def systemd(config: Path, command: Sequence[str], environ: Mapping[str, str], *, drain_s: float) -> Service:
    """Describe the user unit.

    Args:
        config: the user's configuration folder.
        command: what runs the daemon in the foreground.
        environ: of which the variables that matter are kept.
        drain_s: how long calls in flight may take when the daemon is stopped.
    """
    control = ("systemctl", "--user")
    lines = [
        "[Unit]",
        "Description=a2mcp: this machine's tools for MCP clients",
        "StartLimitIntervalSec=300",
        "StartLimitBurst=5",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(map(_quoted_argument, command))}",
        *(f"Environment={_quoted(f'{name}={environ[name]}')}" for name in _KEPT if environ.get(name)),
        "Restart=on-failure",
        f"RestartSec={_RESTART_S}",
        "RestartPreventExitStatus=2 3 4",
        "KillMode=mixed",
        f"TimeoutStopSec={int(drain_s) + _AFTER_STOP_S}",
        "UMask=0077",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return Service(
        path=config / "systemd" / "user" / UNIT,
        text="\n".join(lines) + "\n",
        start=((*control, "daemon-reload"), (*control, "enable", "--now", UNIT)),
        stop=((*control, "disable", "--now", UNIT),),
        forget=((*control, "daemon-reload"),),
        note="It ends when you log out of your last session, unless `loginctl enable-linger` was run once.",
    )


def launchd(home: Path, command: Sequence[str], environ: Mapping[str, str], *, drain_s: float, log: Path) -> Service:
    """Describe the agent; its output goes to ``log``."""
    domain = f"gui/{os.getuid()}"
    path = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    agent = {
        "Label": LABEL,
        "ProgramArguments": [*command],
        "EnvironmentVariables": {name: environ[name] for name in _KEPT if environ.get(name)},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": _LAUNCHD_RESTART_S,
        "ExitTimeOut": int(drain_s) + _AFTER_STOP_S,
        "StandardOutPath": str(log),
        "StandardErrorPath": str(log),
        "Umask": 0o077,
    }
    return Service(
        path=path,
        text=plistlib.dumps(agent, sort_keys=False).decode(),
        start=(("launchctl", "bootstrap", domain, str(path)),),
        stop=(("launchctl", "bootout", f"{domain}/{LABEL}"),),
        forget=(),
        note=f"What it prints is in {log}.",
    )


def _quoted(text: str) -> str:
    """Quote for a unit file, in which a percent sign begins a specifier."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
    return f'"{escaped}"'


def _quoted_argument(text: str) -> str:
    """Quote for a command line, in which a dollar sign begins a variable as well."""
    return _quoted(text.replace("$", "$$"))
