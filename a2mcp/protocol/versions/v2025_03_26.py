"""2025-03-26: Streamable HTTP, audio, and notes on tools."""

from typing import Final

from msgspec.structs import replace

from a2mcp.protocol.versions.v2024_11_05 import V2024_11_05

V2025_03_26: Final = replace(V2024_11_05, version="2025-03-26", blocks=V2024_11_05.blocks | {"audio"})
