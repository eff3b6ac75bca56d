"""2025-11-25: the last one with a handshake."""

from typing import Final

from msgspec.structs import replace

from a2mcp.protocol.versions.v2025_06_18 import V2025_06_18

V2025_11_25: Final = replace(V2025_06_18, version="2025-11-25")
