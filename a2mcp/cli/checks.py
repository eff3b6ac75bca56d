"""What ``doctor`` looks at: one function per question. All of them only look."""

from __future__ import annotations

import enum
import os
import shutil
import stat
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from a2mcp.cli.client import OperatorClient
from a2mcp.config import endpoint as endpoints
from a2mcp.config import instance, load
from a2mcp.config.schema import LimitSettings
from a2mcp.errors import A2mcpError
from a2mcp.http.server.listen import descriptors_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2mcp.config.paths import Home
    from a2mcp.config.schema import Settings
    from a2mcp.http.ports import Status


class Verdict(enum.StrEnum):
    """How a question was answered."""

    OK = "ok"
    WARN = "warn"
    """It works, but not as well or as safely as it could."""
    FAIL = "FAIL"


class Finding(msgspec.Struct, frozen=True):
    """One answer."""

    name: str
    verdict: Verdict
    fact: str
    mend: str = ""
    """What to do; empty when nothing need be done."""


def examine(home: Home) -> list[Finding]:
    """Ask every question about a home; the order is that in which faults follow from one another."""
    settings, findings = _settings(home)
    questions: tuple[Callable[[], Iterator[Finding]], ...] = (
        lambda: _folder(home),
        lambda: _audit(home),
        lambda: _socket(home),
        lambda: _daemon(home, settings),
        lambda: _files(settings),
        _bash,
        _ripgrep,
    )
    for ask in questions:
        findings.extend(ask())
    return findings


def _settings(home: Home) -> tuple[Settings | None, list[Finding]]:
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


def _folder(home: Home) -> Iterator[Finding]:
    try:
        found = home.root.stat()
    except FileNotFoundError:
        yield Finding("home", Verdict.OK, f"{home.root} is not there yet; the first start makes it")
        return
    except OSError as error:
        yield Finding("home", Verdict.FAIL, f"{home.root}: {error.strerror}", "Set A2MCP_HOME to a folder of your own.")
        return
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or not os.access(home.root, os.W_OK | os.X_OK):
        yield Finding(
            "home", Verdict.FAIL, f"{home.root} is no folder of yours to write to", "Set A2MCP_HOME to one that is."
        )
    elif mode & 0o022:
        yield Finding("home", Verdict.WARN, f"others can write to {home.root}", f"chmod 700 {home.root}")
    else:
        yield Finding("home", Verdict.OK, f"{home.root} (mode {mode:04o})")


def _audit(home: Home) -> Iterator[Finding]:
    path = home.audit
    if path.exists():
        usable = path.is_file() and not path.is_symlink() and os.access(path, os.W_OK)
    else:
        # The home itself is made by the first start; any other folder must be there.
        usable = path.parent == home.root or os.access(path.parent, os.W_OK | os.X_OK)
    if usable:
        yield Finding("audit", Verdict.OK, f"{path} can be written")
    else:
        mend = "Set A2MCP_AUDIT to a file in a folder that exists and that you can write to."
        yield Finding("audit", Verdict.FAIL, f"{path} cannot be written: calls would leave no record", mend)


def _socket(home: Home) -> Iterator[Finding]:
    if home.socket.parent == home.root:
        yield Finding("socket", Verdict.OK, str(home.socket))
    else:
        fact = f"the path of the home is too long for a socket, which is therefore {home.socket}"
        yield Finding("socket", Verdict.OK, fact)


def _daemon(home: Home, settings: Settings | None) -> Iterator[Finding]:
    if not instance.is_served(home):
        yield from _absent(home, settings)
        return
    try:
        status = OperatorClient(home).status()
    except A2mcpError as error:
        mend = f"It may be starting or stopping; {home.daemon_log} has what it printed."
        yield Finding("daemon", Verdict.FAIL, f"one holds the lock but does not answer: {error.text}", mend)
        return
    stopping = ", and is stopping" if status.stopping else ""
    yield Finding("daemon", Verdict.OK, f"serves {status.bridge_url} (pid {status.pid}){stopping}")
    yield from _port(settings, status)
    if status.audit.failures:
        mend = f"Is the disk full, or the folder of {home.audit} gone?"
        yield Finding("audit", Verdict.FAIL, f"{status.audit.failures} records could not be written", mend)
    published = endpoints.read(home.endpoint)
    if published is None or published.pid != status.pid:
        mend = "Stop the daemon and start it again."
        yield Finding("endpoint", Verdict.WARN, f"{home.endpoint} does not name the running daemon", mend)


def _port(settings: Settings | None, status: Status) -> Iterator[Finding]:
    served = urlsplit(status.bridge_url).port
    if settings is not None and settings.port and settings.port != served:
        fact = f"the settings say port {settings.port}, and the daemon serves {served}: clients may not find it"
        mend = f"Free port {settings.port}, or set 'port' to {served}; then stop the daemon and start it again."
        yield Finding("port", Verdict.WARN, fact, mend)


def _absent(home: Home, settings: Settings | None) -> Iterator[Finding]:
    yield Finding("daemon", Verdict.OK, "none runs; `a2mcp start` starts one")
    if home.endpoint.exists():
        fact = f"{home.endpoint} was left by a daemon that was killed"
        yield Finding("endpoint", Verdict.WARN, fact, "The next start replaces it; until then, do not trust it.")
    if settings is not None and settings.port and _is_busy(settings.host, settings.port):
        fact = f"port {settings.port} is taken by another program; a start would choose another one"
        yield Finding("port", Verdict.WARN, fact, "End that program, or set another 'port' in a2mcp.json.")


def _is_busy(host: str, port: int) -> bool:
    import errno  # noqa: PLC0415 - asked only when no daemon runs
    import socket  # noqa: PLC0415 - as above

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _files(settings: Settings | None) -> Iterator[Finding]:
    import resource  # noqa: PLC0415 - with the rest of what only doctor needs

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = settings.limits if settings else LimitSettings()
    needed = limits.connections + descriptors_beside(limits.jobs)
    if hard in (resource.RLIM_INFINITY, -1) or hard >= needed:
        yield Finding("files", Verdict.OK, f"{needed} open files are allowed")
    else:
        raised = f"Raise it (`ulimit -Hn {needed}`, or LimitNOFILE= in the unit)"
        mend = f"{raised}, or lower limits.connections or limits.jobs."
        yield Finding("files", Verdict.WARN, f"{hard} open files are allowed, {needed} may be needed", mend)


def _bash() -> Iterator[Finding]:
    path = shutil.which("bash")
    if path:
        yield Finding("bash", Verdict.OK, path)
    else:
        yield Finding("bash", Verdict.FAIL, "there is no bash on PATH", "Install bash: the tool of that name needs it.")


def _ripgrep() -> Iterator[Finding]:
    import sysconfig  # noqa: PLC0415 - with the rest of what only doctor needs

    path = shutil.which("rg") or shutil.which("rg", path=sysconfig.get_path("scripts"))
    if path:
        yield Finding("ripgrep", Verdict.OK, path)
    else:
        fact = "there is no rg: glob and grep use a slower search of our own"
        yield Finding("ripgrep", Verdict.WARN, fact, "Install ripgrep.")
