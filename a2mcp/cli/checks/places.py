"""The daemon's files: whose they are, who else can touch them, and whether they can be written."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from a2mcp.audit.journal import previous
from a2mcp.cli.checks.finding import Finding, Verdict
from a2mcp.config import load, paths
from a2mcp.errors import A2mcpError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2mcp.cli.checks.finding import Seen
    from a2mcp.config.paths import Home
    from a2mcp.config.schema import Settings

_SHORT_LOG: Final = 16 * 1024 * 1024
"""Bytes of a log whose chain is looked at here; for more, somebody has to want it."""


def settings(home: Home) -> tuple[Settings | None, list[Finding]]:
    """Read the settings, and say what is wrong with them."""
    try:
        loaded = load.inspect(home.config)
    except A2mcpError as error:
        where = "" if str(home.config) in error.text else f"{home.config}: "
        return None, [Finding("settings", Verdict.FAIL, f"{where}{error.text}", error.hint)]
    if loaded is None:
        return None, [Finding("settings", Verdict.OK, f"{home.config} is not there yet; the first start makes it")]
    warnings = [Finding("settings", Verdict.WARN, warning, _mend(warning, home)) for warning in loaded.warnings]
    return loaded.settings, warnings or [Finding("settings", Verdict.OK, f"{home.config} is valid")]


def _mend(warning: str, home: Home) -> str:
    if "open to other users" in warning:
        return f"chmod 600 {home.config}"
    if warning.startswith("host "):
        return f"Unless that is wanted, set 'host' to 127.0.0.1 in {home.config}."
    return f"Edit {home.config}."


def folder(seen: Seen) -> Iterator[Finding]:
    """Is the home a folder of ours alone, and can nobody put another in its place?"""
    root = seen.home.root
    try:
        found = root.stat()
    except FileNotFoundError:
        yield Finding("home", Verdict.OK, f"{root} is not there yet; the first start makes it")
        return
    except OSError as error:
        yield Finding("home", Verdict.FAIL, f"{root}: {error.strerror}", "Set A2MCP_HOME to a folder of your own.")
        return
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or not os.access(root, os.W_OK | os.X_OK):
        yield Finding(
            "home", Verdict.FAIL, f"{root} is no folder of yours to write to", "Set A2MCP_HOME to one that is."
        )
    elif mode & 0o022:
        yield Finding("home", Verdict.WARN, f"others can write to {root}", f"chmod 700 {root}")
    elif exchanged := [parent for parent in root.parents if _others_exchange(parent)]:
        fact = f"others can put another folder in the place of the home, as {exchanged[0]} is theirs to write to"
        yield Finding("home", Verdict.WARN, fact, f"chmod go-w {exchanged[0]}, or set A2MCP_HOME to another place.")
    else:
        yield Finding("home", Verdict.OK, f"{root} (mode {mode:04o})")


def _others_exchange(parent: Path) -> bool:
    found = parent.stat()
    return found.st_uid not in {0, os.geteuid()} or bool(found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX)


def files(seen: Seen) -> Iterator[Finding]:
    """Is each file in the home ours, and open to nobody else?"""
    ours = 0
    for path in _ours(seen.home):
        try:
            found = path.lstat()
        except OSError:
            continue
        fault = _fault(path, found)
        if fault is None:
            ours += 1
        else:
            yield fault
    if ours:
        yield Finding("modes", Verdict.OK, f"{ours} files are yours alone")


def _ours(home: Home) -> list[Path]:
    """List what the daemon makes; the settings are looked at by themselves."""
    named = [home.root / name for name in sorted(paths.OURS)]
    named += [home.socket, home.events_socket, home.audit, previous(home.audit), home.installs]
    return [path for path in dict.fromkeys(named) if path != home.config]


def _fault(path: Path, found: os.stat_result) -> Finding | None:
    if found.st_uid != os.geteuid():
        fact = f"{path} belongs to another user (uid {found.st_uid})"
        return Finding(
            "modes", Verdict.FAIL, fact, f"Stop the daemon and move {path} away; the next start makes another."
        )
    if stat.S_ISLNK(found.st_mode):
        fact = f"{path} is a link, which the daemon does not follow when it writes"
        return Finding("modes", Verdict.WARN, fact, "Put the file itself there, or set A2MCP_HOME to where it is.")
    # Programs may be run by anybody; what is in a folder is protected by the folder.
    open_to = 0o022 if path.name == "bin" else 0o077
    if stat.S_IMODE(found.st_mode) & open_to:
        private = "700" if stat.S_ISDIR(found.st_mode) else "600"
        fact = f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):04o})"
        rotated = "; and `a2mcp rotate`, since they may know the token" if path.name == "endpoint.json" else ""
        return Finding("modes", Verdict.WARN, fact, f"chmod {private} {path}{rotated}")
    return None


def audit(seen: Seen) -> Iterator[Finding]:
    """Can the log be written, and has it been?"""
    path = seen.home.audit
    if path.exists():
        usable = path.is_file() and not path.is_symlink() and os.access(path, os.W_OK)
    else:
        # The home itself is made by the first start; any other folder must be there.
        usable = path.parent == seen.home.root or os.access(path.parent, os.W_OK | os.X_OK)
    if usable:
        yield Finding("audit", Verdict.OK, f"{path} can be written")
    else:
        mend = "Set A2MCP_AUDIT to a file in a folder that exists and that you can write to."
        yield Finding("audit", Verdict.FAIL, f"{path} cannot be written: calls would leave no record", mend)
    if seen.status is not None and (failures := seen.status.audit.failures):
        mend = f"Is the disk full, or the folder of {path} gone?"
        yield Finding("audit", Verdict.FAIL, f"{failures} records could not be written", mend)


def chain(seen: Seen) -> Iterator[Finding]:
    """Is the log as it was written?"""
    from a2mcp.audit import verify  # noqa: PLC0415 - the page of a daemon asks rarely

    path = seen.home.audit
    try:
        if sum(one.stat().st_size for one in (path, previous(path)) if one.is_file()) > _SHORT_LOG:
            yield Finding("chain", Verdict.OK, "the log is long; `a2mcp audit --verify` looks at all of it")
            return
        with verify.opened_log(path) as opened:
            report, _ = verify.verify(opened)
    except OSError:
        return  # Of a log that cannot be read more is said than this.
    if report.fault is not None:
        fact = f"{report.fault.file}:{report.fault.line}: {report.fault.text}"
        yield Finding(
            "chain", Verdict.FAIL, fact, "`a2mcp audit --verify`, and ask who wrote to the log beside the daemon."
        )
    elif report.records:
        yield Finding("chain", Verdict.OK, f"{report.records} records follow one another")


def socket(seen: Seen) -> Iterator[Finding]:
    """Where is the operator's channel?"""
    if seen.home.socket.parent == seen.home.root:
        yield Finding("socket", Verdict.OK, str(seen.home.socket))
    else:
        fact = f"the path of the home is too long for a socket, which is therefore {seen.home.socket}"
        yield Finding("socket", Verdict.OK, fact)
