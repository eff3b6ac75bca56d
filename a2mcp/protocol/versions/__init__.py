"""The revisions of MCP that are spoken, each only by what sets it apart from the one before it.

**Legacy** revisions open with ``initialize``; **modern** ones carry everything with each request. The bridge speaks one
legacy revision whatever is asked, and keeps sessions.
"""

from __future__ import annotations

from typing import Final

from a2mcp.protocol.versions.v2024_10_07 import V2024_10_07
from a2mcp.protocol.versions.v2024_11_05 import V2024_11_05
from a2mcp.protocol.versions.v2025_03_26 import V2025_03_26
from a2mcp.protocol.versions.v2025_06_18 import V2025_06_18
from a2mcp.protocol.versions.v2025_11_25 import V2025_11_25
from a2mcp.protocol.versions.v2026_07_28 import V2026_07_28

LEGACY: Final = {
    dialect.version: dialect for dialect in (V2024_10_07, V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25)
}
MODERN: Final = {dialect.version: dialect for dialect in (V2026_07_28,)}

NEWEST_LEGACY: Final = V2025_11_25
"""What a handshake that asks for anything unknown is answered with, and what a request without a version is in."""
