"""What the daemon takes from the system at its start: a socket, room for connections, threads. Knows no actor."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

import msgspec

from a2mcp.config import load
from a2mcp.errors import A2mcpError, SystemRefused
from a2mcp.http.server.connections import Connections
from a2mcp.http.server.listen import affordable_connections, bind

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from a2mcp.config.paths import Home
    from a2mcp.config.schema import Settings

logger = logging.getLogger("a2mcp")


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be there at one time, given the settings and what the system allows."""

    connections: Connections
    calls: int
    calls_each: int
    """Calls of one session, or of one client."""


def listen(home: Home, settings: Settings) -> socket.socket:
    """Bind the port; another one, with a warning, where it is taken. One that was chosen is kept.

    Raises:
        CannotListen: the address cannot be listened on.
    """
    sock, as_asked = bind(settings.host, settings.port or 0)
    port = sock.getsockname()[1]
    if not as_asked:
        logger.warning(
            "[a2mcp] warning: port %d is taken; this time it is %d. Free the port, or update the clients' settings.",
            settings.port,
            port,
        )
    if settings.port is None:
        try:
            load.keep_port(home.config, port)
        except A2mcpError as error:
            logger.warning("[a2mcp] warning: the port could not be kept in the settings: %s", error)
    return sock


def measure(settings: Settings) -> Room:
    """Find out how much the system allows of what the settings want; says so when that is less.

    Raises:
        SystemRefused: it does not allow what a daemon needs.
    """
    limits = settings.limits
    connections = affordable_connections(limits.connections, commands=limits.jobs)
    if connections < limits.connections:
        logger.warning(
            "[a2mcp] warning: the limit on open files allows %d connections, not %d. Raise it with `ulimit -n`.",
            connections,
            limits.connections,
        )
    return room_for(settings, connections)


def room_for(settings: Settings, connections: int) -> Room:
    """Share connections out.

    A call holds its connection while it runs. So that calls alone never take them all, and whoever comes next still
    gets in for a ``ping``, they may have seven of eight; strangers have half at most.
    """
    limits = settings.limits
    calls = max(1, min(limits.in_flight, connections * 7 // 8))
    each = limits.in_flight_each if limits.in_flight_each is not None else (calls + 1) // 2
    return Room(
        connections=Connections(connections, max(1, min(limits.unauthenticated, connections // 2))),
        calls=calls,
        calls_each=min(each, calls),
    )


@contextlib.contextmanager
def threads() -> Iterator[None]:
    """Start threads in this block; a system that gives none any more is no fault of ours.

    Raises:
        SystemRefused: it gives none any more.
    """
    try:
        yield
    except RuntimeError as cause:
        if "start new thread" not in str(cause):
            raise
        raise SystemRefused(cause) from cause
