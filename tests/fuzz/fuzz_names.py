"""``Host`` and ``Origin``: let in are the names of this machine and those of the settings, spelled as RFC 3986 spells them."""

from __future__ import annotations

import ipaddress
import re

from a2mcp.auth.origin import AllowedHosts, host_name

EXTRA = "box.example"
_AUTHORITY = re.compile(r"([A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?")


def check(data: bytes) -> None:
    """Fail unless a value is refused, or names this machine or one of the settings' names."""
    value = data.decode("latin-1")
    hosts = AllowedHosts("127.0.0.1", [EXTRA])
    if hosts.host(value):
        assert _is_ours(value), value
    elif (plain := _AUTHORITY.fullmatch(value)) is not None:
        assert not _names_us(plain[1]), value
    if hosts.origin(value):
        scheme, _, authority = value.partition("://")
        assert scheme.lower() in ("http", "https"), value
        assert _is_ours(authority), value
    assert host_name(value) is None or host_name(value) == (host_name(value) or "").lower()


def _is_ours(authority: str) -> bool:
    found = _AUTHORITY.fullmatch(authority)
    return found is not None and _names_us(found[1])


def _names_us(host: str) -> bool:
    bare = host.strip("[]").rstrip(".").lower()
    if bare in (EXTRA, "localhost", "127.0.0.1"):
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False
