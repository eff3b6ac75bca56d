"""The paths and the methods each takes: the whole table, read by the guard and by the app.

Paths are compared as they stand in the request target, undecoded: ``/xfer%2f..%2fhost-llm`` is not ``/host-llm``.
Whatever is not reserved here belongs to the bridge (seed, "Transport").
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

ANY_METHOD: Final = frozenset(
    {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK"}
    | {"PROPPATCH"}
)


class Access(enum.Enum):
    """What lets a request in, once its host and origin are ours."""

    TOKEN = enum.auto()
    HERE = enum.auto()
    """The token, or that it comes from this machine and nobody passed it on."""
    PAGE = enum.auto()
    """That it comes from this machine and nobody passed it on; never the token. The page itself asks for more."""
    ANYBODY = enum.auto()
    """Nothing. What is served there tells nothing about anybody."""


class Route(msgspec.Struct, frozen=True):
    """One path, with what lies below it when ``subtree`` is set."""

    name: str
    path: str
    methods: frozenset[str]
    subtree: bool = False
    standard: bool = False
    """Whether refusals say what the HTTP and MCP specifications want said (``Allow``, ``WWW-Authenticate``)."""
    access: Access = Access.TOKEN

    def matches(self, raw_path: str) -> bool:
        """Whether this route serves the path."""
        return raw_path == self.path or (self.subtree and raw_path.startswith(self.path.rstrip("/") + "/"))


_LOOKING: Final = frozenset({"GET", "HEAD"})
RESERVED: Final = (
    Route("standard", "/mcp", frozenset({"POST", "OPTIONS"}), standard=True),
    Route("standard", "/mcp/", frozenset({"POST", "OPTIONS"}), standard=True),
    Route("xfer", "/xfer", ANY_METHOD, subtree=True),
    Route("host-llm", "/host-llm", frozenset({"POST"})),
    Route("health", "/healthz", _LOOKING, access=Access.ANYBODY),
    Route("ready", "/readyz", _LOOKING, access=Access.ANYBODY),
    Route("ui", "/ui", frozenset({"GET", "POST", "DELETE"}), subtree=True, access=Access.PAGE),
    Route("metrics", "/metrics", _LOOKING, access=Access.HERE),
)
BRIDGE: Final = Route("bridge", "/", frozenset({"POST", "DELETE"}), subtree=True)


def route_for(raw_path: str) -> Route:
    """The route that serves a path; the bridge where nothing else does."""
    for route in RESERVED:
        if route.matches(raw_path):
            return route
    return BRIDGE
