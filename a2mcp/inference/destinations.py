"""Where models are asked: the hosts and ports that a takeover keeps this process from.

Owns what counts as the same place. A provider's host is meant with every port. This machine itself is never meant as a
whole, for the daemon lives here too: only the port that a provider has on it. Of a proxy, only its port as well.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

LOOPBACK: Final = "localhost"
"""Every address of this machine's loopback interface, under one name."""
_PORTS: Final = {"http": 80, "https": 443, "socks": 1080, "socks4": 1080, "socks5": 1080, "socks5h": 1080}


class Destinations(msgspec.Struct, frozen=True):
    """Places that are kept from."""

    hosts: frozenset[str] = frozenset()
    """By their canonical name, with every port."""
    places: frozenset[tuple[str, int]] = frozenset()
    """Only with this port."""

    def __len__(self) -> int:
        return len(self.hosts) + len(self.places)

    def meant(self, host: object, port: object) -> bool:
        """Whether this host, with this port as far as it is known, is one of them."""
        name = canonical(host)
        if name is None:
            return False
        return name in self.hosts or (name, _number(port)) in self.places


def destinations(urls: Iterable[str], proxies: Iterable[str]) -> Destinations:
    """Make them of the addresses of providers, and of the proxies on the way to these."""
    ends = places_of(urls)
    here = frozenset(end for end in ends if end[0] == LOOPBACK)
    return Destinations(frozenset(name for name, _ in ends - here), here | places_of(proxies))


def places_of(urls: Iterable[str]) -> frozenset[tuple[str, int]]:
    """The hosts and ports at the other end of a connection that serves these addresses."""
    return frozenset(_place(url) for url in urls)


def is_name(host: str) -> bool:
    """Whether only a resolver knows the addresses of this canonical host."""
    return host != LOOPBACK and _address(host) is None


def proxies_for(urls: Iterable[str]) -> list[str]:
    """The proxies that a library which looks at the system's settings would ask these addresses through.

    Through a proxy nobody looks up the provider's name, nor connects to it: the proxy is where the request goes.
    """
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - for an arming only

    given = getproxies()
    found = []
    for url in urls:
        parts = urlsplit(url)
        proxy = given.get(parts.scheme) or given.get("all")
        if proxy and not proxy_bypass(parts.netloc):
            found.append(proxy if "://" in proxy else f"http://{proxy}")
    return found


def canonical(host: object) -> str | None:
    """One form for all that means the same host; None for what is no host."""
    if isinstance(host, bytes | bytearray):
        host = bytes(host).decode("ascii", "replace")
    if not isinstance(host, str):
        return None
    name = host if host.isascii() else _in_ascii(host)
    name = name.rstrip(".").lower()
    if name == LOOPBACK or name.endswith(".localhost"):
        return LOOPBACK
    address = _address(name)
    if address is None:
        return name
    # NOTE: to connect to "any address" is to connect to this machine.
    return LOOPBACK if address.is_loopback or address.is_unspecified else str(address)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Read an address in any form that the system reads: ``127.1``, ``0x7f000001``, ``::ffff:1.2.3.4``."""
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(name)) if name[:1].isdigit() else None
        except (OSError, ValueError):
            return None
    return getattr(address, "ipv4_mapped", None) or address


def _in_ascii(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def _number(port: object) -> int:
    """A port as a number; 0, which nobody has, for what is not known."""
    if isinstance(port, bytes):
        port = port.decode("ascii", "replace")
    if isinstance(port, str):
        return int(port) if port.isascii() and port.isdigit() else _PORTS.get(port, 0)
    return port if isinstance(port, int) else 0


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return canonical(parts.hostname or "") or "", parts.port or _PORTS.get(parts.scheme, 0)
