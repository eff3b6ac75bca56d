"""Opens the session that all clients of a run share, and ends it. Blocking: nothing is measured yet."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from a2mcp.bench.errors import HandshakeFailed
from a2mcp.bench.messages import FIRST_ID, ending, make, opening
from a2mcp.bench.replies import Malformed, Reader, judge

if TYPE_CHECKING:
    from a2mcp.bench.plan import Plan
    from a2mcp.bench.replies import Reply


def choose_address(plan: Plan) -> Plan:
    """Settle, of several addresses of a name, on the first that takes a connection; else nothing changes."""
    address = plan.address
    for ip in (address.ip, *address.other_ips) if address.other_ips else ():
        with contextlib.suppress(OSError), socket.create_connection((ip, address.port), timeout=plan.timeout):
            return replace(plan, address=replace(address, ip=ip))
    return plan


def open_session(plan: Plan) -> str | None:
    """Do the legacy handshake.

    Returns:
        The session the server issued, or ``None`` if it issued none.

    Raises:
        HandshakeFailed: no connection, no answer, or a refusal; the text says which.
    """
    first, second = opening(plan)
    reply = _checked(plan, make(plan, first, None).render(FIRST_ID), FIRST_ID, "initialize")
    session = reply.head.session
    _checked(plan, make(plan, second, session).render(FIRST_ID), None, "notifications/initialized")
    return session


def end_session(plan: Plan, session: str) -> None:
    """Tell the server that the session is over; whether it cares is its own affair."""
    with contextlib.suppress(OSError, Malformed):
        exchange(plan, ending(plan, session))


def exchange(plan: Plan, request: bytes) -> Reply:
    """Send one request on a connection of its own and read the reply.

    Raises:
        OSError: no connection, or ``TimeoutError`` when the whole exchange takes longer than the plan's time-out.
        Malformed: the reply is not HTTP.
    """
    deadline = time.monotonic() + plan.timeout
    reader = Reader()
    with socket.create_connection((plan.address.ip, plan.address.port), timeout=plan.timeout) as connection:
        connection.sendall(request)
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError("timed out")
            connection.settimeout(remaining)
            data = connection.recv(256 * 1024)
            reply = reader.feed(data) if data else reader.finish()
            if reply is not None:
                return reply
            if not data:
                raise ConnectionAbortedError("closed before the reply was whole")


def _checked(plan: Plan, request: bytes, ident: int | None, what: str) -> Reply:
    try:
        reply = exchange(plan, request)
    except (OSError, Malformed) as error:
        text = f"{what} at {plan.address.url} failed: {error}."
        raise HandshakeFailed(text, hint="Does the server run, and does it speak HTTP there?") from error
    problem = judge(reply, ident)
    if problem is not None:
        raise HandshakeFailed(f"{what} at {plan.address.url} was answered with {problem}.", hint=_hint(problem))
    return reply


def _hint(problem: str) -> str:
    if problem in {"http 401", "http 403"}:
        return "Give the token with --token-file or A2MCP_BENCH_TOKEN."
    return "Try another path, --era modern, or --no-session."
