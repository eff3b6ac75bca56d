"""The paths and the methods each takes: the whole table, read by the guard and by the app.

Paths are compared as they stand in the request target, undecoded: ``/xfer%2f..%2fhost-llm`` is not ``/host-llm``.
Whatever is not reserved here belongs to the bridge (seed, "Transport").
"""

from __future__ import annotations

from typing import Final

import msgspec

ANY_METHOD: Final = frozenset(
    {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK"}
    | {"PROPPATCH"}
)


class Route(msgspec.Struct, frozen=True):
    """One path, with what lies below it when ``subtree`` is set."""

    name: str
    path: str
    methods: frozenset[str]
    subtree: bool = False
    standard: bool = False
    """Whether refusals say what the HTTP and MCP specifications want said (``Allow``, ``WWW-Authenticate``)."""

    def matches(self, raw_path: str) -> bool:
        """Whether this route serves the path."""
        return raw_path == self.path or (self.subtree and raw_path.startswith(self.path.rstrip("/") + "/"))


RESERVED: Final = (
    Route("standard", "/mcp", frozenset({"POST", "OPTIONS"}), standard=True),
    Route("standard", "/mcp/", frozenset({"POST", "OPTIONS"}), standard=True),
    Route("xfer", "/xfer", ANY_METHOD, subtree=True),
    Route("host-llm", "/host-llm", frozenset({"POST"})),
)
BRIDGE: Final = Route("bridge", "/", frozenset({"POST", "DELETE"}), subtree=True)


def route_for(raw_path: str) -> Route:
    """The route that serves a path; the bridge where nothing else does."""
    for route in RESERVED:
        if route.matches(raw_path):
            return route
    return BRIDGE


def methods_for(raw_path: str) -> frozenset[str]:
    """The methods a path takes."""
    return route_for(raw_path).methods
