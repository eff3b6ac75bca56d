"""Which names this daemon answers to: the guard against web pages and rebound DNS names.

Ports are not compared: SSH forwarding changes them (``ssh -L 9000:127.0.0.1:4801`` makes the client say port 9000).
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@/\\\s]+)(?::[0-9]*)?")
_ORIGIN = re.compile(r"https?://([^/?#]+)", re.IGNORECASE)


def host_name(authority: str) -> str | None:
    """The host of ``name``, ``name:port`` or ``[v6]:port``, in lower case; None when it is none of these."""
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return None
    return match[1].strip("[]").rstrip(".").lower() or None


def is_loopback(host: str) -> bool:
    """Whether this name or address is this machine talking to itself, by its spelling alone: nothing is looked up."""
    if host in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class AllowedHosts:
    """The names of ours: loopback, the configured address, and what the operator added.

    Args:
        host: the address the daemon listens on.
        extra: ``allowed_hosts`` of the settings.
    """

    def __init__(self, host: str, extra: Iterable[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in (host, *extra))
        self.generation = 0
        """Rises with every change, so that a remembered "allowed" is not older than the list."""

    def host(self, authority: str) -> bool:
        """Whether a ``Host`` value names us."""
        name = host_name(authority)
        return name is not None and (name in self._names or is_loopback(name))

    def origin(self, origin: str) -> bool:
        """Whether an ``Origin`` value is a page of ours; ``null`` and other schemes never are."""
        # SECURITY: exactly what browsers send. urlsplit leaves out tabs and line breaks, and takes a path.
        match = _ORIGIN.fullmatch(origin)
        return match is not None and self.host(match[1])

    def replace(self, host: str, extra: Iterable[str] = ()) -> None:
        """Take another list of names."""
        self._names = frozenset(name.lower() for name in (host, *extra))
        self.generation += 1
