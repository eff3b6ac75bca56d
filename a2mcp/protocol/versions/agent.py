"""The host's own agent as a caller: no wire, but the same calls; leaving is how it cancels one."""

from typing import Final

from msgspec.structs import replace

from a2mcp.protocol.versions.bridge import BRIDGE

AGENT: Final = replace(BRIDGE, name="agent", sessions=False, closing_cancels=True)
