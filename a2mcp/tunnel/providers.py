"""Whose tunnel it is: what to run, and how the host name is found in what the program prints.

A provider is a value with two functions; another one is another row of ``PROVIDERS``. A secret goes into the child's
environment, never into its arguments, which every user of the machine can read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.errors import CannotTunnel

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT: Final = "cloudflared"

# PERF: compiled when a tunnel is opened, not when a daemon starts.
_QUICK: Final = r"(?<!\S)https://(?!api\.)([a-z0-9][a-z0-9-]{0,62}\.trycloudflare\.com)(?=[\s|/]|$)"
_REGISTERED: Final = "Registered tunnel connection"
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST_NAME: Final = rf"{_LABEL}(?:\.{_LABEL})+"
_LONG_WORD: Final = r"[A-Za-z0-9+/=_.-]{16,4096}"


class Wish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tunnel that the operator asks for."""

    provider: str = DEFAULT
    hostname: str | None = None
    """Of a named tunnel: the name that it has at its provider."""
    token: str | None = None
    """Of a named tunnel."""

    def __repr__(self) -> str:
        # SECURITY: without this the token would stand in any traceback.
        return f"Wish(provider={self.provider!r}, hostname={self.hostname!r})"


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What is started: arguments after the program's path, and what its environment has beside ours."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    hostname_in: Callable[[str], str | None]
    """The host name, when this line says that the tunnel is up."""

    def __repr__(self) -> str:
        # SECURITY: as above.
        return f"Launch(arguments={self.arguments!r})"


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of tunnel."""

    program: str
    """The name under which ``a2mcp/obtain`` knows it."""
    launch: Callable[[Wish, str], Launch]
    """Given the wish and our address; raises ``CannotTunnel`` for a wish that is not complete."""


def provider_of(wish: Wish) -> Provider:
    """Find the provider that is wished for.

    Raises:
        CannotTunnel: there is no such provider.
    """
    try:
        return PROVIDERS[wish.provider]
    except KeyError:
        known = ", ".join(PROVIDERS)
        raise CannotTunnel(f"No provider is called '{wish.provider[:80]}'.", hint=f"There are {known}.") from None


def _quick(wish: Wish, origin: str) -> Launch:
    if wish.hostname is not None or wish.token is not None:
        raise CannotTunnel(
            "A quick tunnel has a name by chance and needs no token.", hint="Use the provider cloudflared-named."
        )
    return Launch(arguments=("tunnel", "--url", origin), environment=_CLOUDFLARED, hostname_in=_quick_name)


def _quick_name(line: str) -> str | None:
    """Take the name out of the box that cloudflared draws around it, and not out of its messages about its own API."""
    found = re.search(_QUICK, line)
    return found[1] if found else None


def _named(wish: Wish, _origin: str) -> Launch:
    hostname = (wish.hostname or "").lower().rstrip(".")
    if len(hostname) > 253 or not re.fullmatch(_HOST_NAME, hostname):  # What DNS allows.
        raise CannotTunnel(
            "A named tunnel needs the host name that it has at Cloudflare.", hint="Give it with --hostname."
        )
    if wish.token is None or not re.fullmatch(_LONG_WORD, wish.token):
        raise CannotTunnel(
            "A named tunnel needs its token.", hint="Give a file that holds it with --token-file, or set TUNNEL_TOKEN."
        )

    def name(line: str) -> str | None:
        return hostname if _REGISTERED in line else None

    return Launch(
        arguments=("tunnel", "run"), environment={**_CLOUDFLARED, "TUNNEL_TOKEN": wish.token}, hostname_in=name
    )


_CLOUDFLARED: Final = {"NO_AUTOUPDATE": "true"}
"""What was found or verified stays what it is."""

PROVIDERS: Final = {
    DEFAULT: Provider(program="cloudflared", launch=_quick),
    "cloudflared-named": Provider(program="cloudflared", launch=_named),
}
