"""The listening socket, and how many connections the machine lets it have."""

from __future__ import annotations

import errno
import resource
import socket
from typing import Final

from a2mcp.errors import CannotListen, SystemRefused, remedy

_HINT: Final = "Check 'host' in the settings."
HEADROOM: Final = 256
"""Descriptors kept for everything that is neither a connection nor a command: log, files being read."""
PER_COMMAND: Final = 6
"""Descriptors of a running command: three pipes, two files, the process."""
LEAST: Final = 48
"""What a daemon must have: it opens 22 by itself, and log, events, one command and one connection take the rest."""


def bind(host: str, port: int) -> tuple[socket.socket, bool]:
    """Bind the address; when its port is taken, another one of the same host.

    Returns:
        The socket, not yet listening, and whether it got the port that was asked for.

    Raises:
        CannotListen: the host is no address of this machine, or nothing can be bound on it.
    """
    try:
        return _bind(host, port), True
    except OSError as cause:
        if port == 0 or cause.errno not in (errno.EADDRINUSE, errno.EACCES):
            text = f"Cannot listen on {host} port {port}: {cause.strerror}."
            raise CannotListen(text, hint=remedy(cause, _HINT)) from cause
    try:
        return _bind(host, 0), False
    except OSError as cause:
        raise CannotListen(f"Cannot listen on {host}: {cause.strerror}.", hint=remedy(cause, _HINT)) from cause


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


def affordable_connections(wanted: int, *, commands: int) -> int:
    """Raise the soft limit on descriptors as far as needed and allowed; how many connections that gives.

    Args:
        wanted: connections.
        commands: how many may run beside them.

    Raises:
        SystemRefused: it gives none, or nothing could be done with them.
    """
    others = descriptors_beside(commands)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + others
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return wanted
    if soft <= LEAST:
        text = f"the limit on open files is {soft}, and more than {LEAST} are needed"
        raise SystemRefused(OSError(errno.EMFILE, text))
    # Where descriptors are few, half of them are for connections: one connection would be no service.
    return min(wanted, soft - max(LEAST, min(others, soft // 2)))


def descriptors_beside(commands: int) -> int:
    """How many descriptors the daemon needs beside its connections when so many commands run."""
    return HEADROOM + PER_COMMAND * commands
