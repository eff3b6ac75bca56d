"""The running daemon: whether it answers, whom it answers, and what one that was killed has left."""

from __future__ import annotations

import errno
import http.client
import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from a2mcp import __version__
from a2mcp.auth.origin import is_loopback
from a2mcp.cli.checks.finding import Finding, Verdict
from a2mcp.config import endpoint as endpoints
from a2mcp.policy.approval import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2mcp.cli.checks.finding import Seen
    from a2mcp.config.paths import Home
    from a2mcp.errors import A2mcpError
    from a2mcp.http.ports import Status

PATIENCE_S: Final = 3.0
_SHOWN: Final = 8


def silent(home: Home, error: A2mcpError) -> Finding:
    """Say that a daemon is there and does not answer on its channel."""
    mend = f"It may be starting or stopping; {home.daemon_log} has what it printed."
    return Finding("daemon", Verdict.FAIL, f"one holds the lock but does not answer: {error.text}", mend)


def daemon(seen: Seen) -> Iterator[Finding]:
    """Does one run, and is it the one that others are told of?"""
    status, home = seen.status, seen.home
    published = endpoints.read(home.endpoint)
    if not seen.served:
        yield Finding("daemon", Verdict.OK, "none runs; `a2mcp start` starts one")
        if home.endpoint.exists():
            fact = f"{home.endpoint} was left by a daemon that was killed"
            yield Finding("endpoint", Verdict.WARN, fact, "The next start replaces it; until then, do not trust it.")
    elif status is not None:
        stopping = ", and is stopping" if status.stopping else ""
        yield Finding("daemon", Verdict.OK, f"serves {status.bridge_url} (pid {status.pid}){stopping}")
        again = "Stop the daemon and start it again."
        if status.version != __version__:
            fact = f"it is version {status.version}, and this command {__version__}"
            yield Finding("version", Verdict.WARN, fact, again)
        if published is None or published.pid != status.pid:
            yield Finding("endpoint", Verdict.WARN, f"{home.endpoint} does not name the running daemon", again)


def port(seen: Seen) -> Iterator[Finding]:
    """Is the port that of the settings, or free to become it?"""
    wanted = seen.settings.port if seen.settings else None
    if not wanted or seen.settings is None:
        return
    if seen.status is not None:
        served = urlsplit(seen.status.bridge_url).port
        if wanted != served:
            fact = f"the settings say port {wanted}, and the daemon serves {served}: clients may not find it"
            mend = f"Free port {wanted}, or set 'port' to {served}; then stop the daemon and start it again."
            yield Finding("port", Verdict.WARN, fact, mend)
    elif not seen.served and _is_busy(seen.settings.host, wanted):
        fact = f"port {wanted} is taken by another program; a start would choose another one"
        yield Finding("port", Verdict.WARN, fact, "End that program, or set another 'port' in a2mcp.json.")


def _is_busy(host: str, wanted: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, wanted))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def reach(seen: Seen) -> Iterator[Finding]:
    """Does its port answer, as a caller on this machine sees it?"""
    if seen.status is None:
        return
    try:
        said = _knock(seen.status)
    except (OSError, http.client.HTTPException) as error:
        said = str(error) or type(error).__name__
    if not said:
        yield Finding("reach", Verdict.OK, f"{seen.status.bridge_url} answers")
        return
    mend = f"`kill -USR1 {seen.status.pid}` has it print where it hangs; then stop it and start it again."
    yield Finding("reach", Verdict.FAIL, f"{seen.status.bridge_url} does not answer as it should: {said}", mend)


def _knock(status: Status) -> str:
    """Ask for the one word that needs no token; what is wrong with the answer."""
    address = urlsplit(status.bridge_url)
    host = endpoints.from_here(address.hostname or "")
    connection = http.client.HTTPConnection(host, address.port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/healthz")
        code = connection.getresponse().status
    finally:
        connection.close()
    return "" if code == http.client.OK else f"HTTP {code}"


def exposure(seen: Seen) -> Iterator[Finding]:
    """Who can reach it beside this machine?"""
    if seen.status is None:
        return
    host = urlsplit(seen.status.bridge_url).hostname or ""
    asks = seen.settings is None or seen.settings.approval.mode is not Mode.YOLO
    at_once = "" if asks else ", and nothing asks before a tool runs"
    if not is_loopback(host):
        fact = f"it listens on {host}: other machines reach it, and the token travels readable{at_once}"
        mend = f"Set 'host' to 127.0.0.1 in {seen.home.config}, and forward the port over SSH where it is needed."
        yield Finding("exposure", Verdict.WARN, fact, mend)
    tunnel = seen.status.tunnel
    if tunnel.state != "closed":
        where = f"at {tunnel.url} since {tunnel.since}" if tunnel.url else f"soon ({tunnel.state})"
        fact = f"the internet reaches it {where}; only the token is in between{at_once}"
        yield Finding("exposure", Verdict.WARN, fact, "`a2mcp tunnel stop` when it is not needed any more.")
    elif is_loopback(host):
        yield Finding("exposure", Verdict.OK, f"only this machine reaches it ({host}, no tunnel)")


def orphans(seen: Seen) -> Iterator[Finding]:
    """Did a daemon that was killed leave something running?"""
    mend = "`a2mcp jobs` lists them, and `a2mcp jobs --stop ID` ends them."
    if seen.status is not None:
        if count := seen.status.orphans:
            yield Finding("orphans", Verdict.WARN, f"{count} command(s) of a daemon that was killed still run", mend)
    elif not seen.served:
        from a2mcp.host import orphans as left  # noqa: PLC0415 - a daemon knows its own

        pids = sorted(one.pid for who in left.search(seen.home.root).values() for one in who)
        if pids:
            shown = ", ".join(map(str, pids[:_SHOWN])) + (" …" if len(pids) > _SHOWN else "")
            fact = f"{len(pids)} process(es) of a daemon that was killed still run: {shown}"
            yield Finding("orphans", Verdict.WARN, fact, f"Start a daemon; then {mend}")
