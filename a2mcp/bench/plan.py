"""What to measure: the address, the mix of calls, how many clients and for how long. Sends nothing.

Refuses what must not be measured by accident: an address that is not this machine's own.
"""

from __future__ import annotations

import enum
import ipaddress
import random
import socket
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from a2mcp.bench.errors import BadPlan

if TYPE_CHECKING:
    from pathlib import Path

MAX_CLIENTS: Final = 10_000
_MAX_WEIGHT: Final = 1000


class Era(enum.StrEnum):
    """How a request is framed."""

    LEGACY = "legacy"
    """Revisions up to 2025-11-25: ``initialize`` first, then a session if the server issues one."""
    MODERN = "modern"
    """Revision 2026-07-28: no session; version and client in every message, mirrored in the headers."""

    @property
    def version(self) -> str:
        """The protocol revision that is spoken."""
        return "2025-11-25" if self is Era.LEGACY else "2026-07-28"

    @property
    def cheapest(self) -> str:
        """The method that asks least of a server: what is measured when nothing is named."""
        return "ping" if self is Era.LEGACY else "server/discover"


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a mix: a tool with its arguments, or a method with its params."""

    weight: int = 1
    tool: str | None = None
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    method: str | None = None
    params: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def label(self) -> str:
        """What the step is called in a report."""
        return f"tools/call {self.tool}" if self.tool is not None else str(self.method)


class Address(msgspec.Struct, frozen=True):
    """Where the server is. The name was looked up once: the run connects to one of these addresses and no other."""

    url: str
    host: str
    ip: str
    port: int
    target: str
    other_ips: tuple[str, ...] = ()
    """More addresses of the name, for a server that listens on one of them only (``localhost`` has two)."""

    @property
    def authority(self) -> str:
        """The value of the ``Host`` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == 80 else f"{host}:{self.port}"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a run needs to know. ``calls`` ends it early; else it lasts ``seconds``."""

    address: Address
    steps: tuple[Step, ...]
    era: Era = Era.LEGACY
    clients: int = 16
    calls: int | None = None
    seconds: float = 10.0
    warmup: float = 1.0
    think_ms: float = 0.0
    timeout: float = 30.0
    token: str | None = None
    session: bool = True


def resolve(url: str, *, allow_remote: bool = False) -> Address:
    """Take a URL apart and look its name up.

    Raises:
        BadPlan: not an ``http`` URL, an unknown name, or an address that is not loopback without ``allow_remote``.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError as error:
        raise BadPlan(f"'{url}' is not a URL: {error}.") from error
    if parts.scheme != "http" or not parts.hostname:
        raise BadPlan(f"'{url}' is not an http:// URL.", hint="TLS is not measured: name the server behind the proxy.")
    if parts.username is not None:
        raise BadPlan("The URL must not carry credentials.", hint="Give the token with --token-file.")
    found = _look_up(parts.hostname, port)
    if not allow_remote and not all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found):
        raise BadPlan(
            f"{parts.hostname} is not this machine ({', '.join(found)}).",
            hint="Load on a machine of somebody else's is an attack; --yes-remote says that you may.",
        )
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not target.isascii() or not target.isprintable() or " " in target:
        raise BadPlan("The path of the URL must be percent-encoded.")
    return Address(url=url, host=parts.hostname, ip=found[0], port=port, target=target, other_ips=tuple(found[1:]))


def _look_up(host: str, port: int) -> list[str]:
    """All addresses of a name, each once, in the order of the resolver."""
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise BadPlan(f"'{host}' has no address: {error}.") from error
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def one_tool(name: str, arguments: str) -> tuple[Step, ...]:
    """A mix of one tool. ``arguments`` is the text of a JSON object.

    Raises:
        BadPlan: the arguments are not a JSON object.
    """
    try:
        return (Step(tool=name, args=msgspec.json.decode(arguments, type=dict[str, Any])),)
    except msgspec.MsgspecError as error:
        raise BadPlan(f"The arguments are not a JSON object: {error}.") from error


def read_mix(path: Path) -> tuple[Step, ...]:
    """Read a mix: a JSON list of ``{"weight", "tool", "args"}`` and ``{"weight", "method", "params"}``.

    Raises:
        BadPlan: the file cannot be read, or an entry is not one of these; the entry is named.
    """
    try:
        steps = msgspec.json.decode(path.read_bytes(), type=list[Step])
    except (OSError, msgspec.MsgspecError) as error:
        raise BadPlan(f"The mix {path} cannot be used: {error}.") from error
    if not steps:
        raise BadPlan(f"The mix {path} is empty.")
    for number, step in enumerate(steps):
        if (step.tool is None) == (step.method is None):
            raise BadPlan(f"Entry {number} of the mix must have either 'tool' or 'method'.")
        if not 1 <= step.weight <= _MAX_WEIGHT:
            raise BadPlan(f"Entry {number} of the mix: 'weight' must be 1 to {_MAX_WEIGHT}.")
    return tuple(steps)


def order(steps: tuple[Step, ...]) -> list[int]:
    """The order in which the steps are sent, over and over: exact shares, shuffled the same way every time."""
    sequence = [index for index, step in enumerate(steps) for _ in range(step.weight)]
    random.Random(0).shuffle(sequence)  # noqa: S311 - a fixed order, nothing secret
    return sequence
