"""2025-06-18: structured results, links to resources, and questions to the caller."""

from typing import Final

from msgspec.structs import replace

from a2mcp.protocol.versions.v2025_03_26 import V2025_03_26

V2025_06_18: Final = replace(
    V2025_03_26,
    version="2025-06-18",
    blocks=V2025_03_26.blocks | {"resource_link"},
    structured=True,
    asks_by_stream=True,
)
