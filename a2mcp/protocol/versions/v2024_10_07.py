"""2024-10-07: the first revision that a client here may ask for."""

from typing import Final

from a2mcp.protocol.dialects import Dialect

V2024_10_07: Final = Dialect(name="legacy", version="2024-10-07")
