"""The bridge: 2025-11-25 with sessions, JSON alone, and tools alone (seed, "Transport" and "Methods")."""

from typing import Final

from msgspec.structs import replace

from a2mcp.protocol.versions.v2025_11_25 import V2025_11_25

BRIDGE: Final = replace(
    V2025_11_25,
    name="bridge",
    sessions=True,
    streams=False,
    blocks=frozenset({"text", "image"}),
    unknown_tool_is_error=False,
    asks_by_stream=False,
)
