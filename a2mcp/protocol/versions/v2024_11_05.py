"""2024-11-05: nothing that this side of the wire notices."""

from typing import Final

from msgspec.structs import replace

from a2mcp.protocol.versions.v2024_10_07 import V2024_10_07

V2024_11_05: Final = replace(V2024_10_07, version="2024-11-05")
