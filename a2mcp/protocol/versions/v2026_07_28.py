"""2026-07-28: no handshake and no sessions; each request says who speaks and what it can do."""

from typing import Final

import msgspec
from msgspec.structs import replace

from a2mcp import __version__
from a2mcp.protocol.versions.v2025_11_25 import V2025_11_25

_SERVER: Final = {"io.modelcontextprotocol/serverInfo": {"name": "a2mcp", "version": __version__}}
_SIGNATURE: Final = b',"_meta":' + msgspec.json.encode(_SERVER)

V2026_07_28: Final = replace(
    V2025_11_25,
    name="modern",
    version="2026-07-28",
    http_statuses=True,
    closing_cancels=True,
    asks_by_stream=False,
    asks_by_retry=True,
    mirrors=True,
    cacheable=True,
    resource_not_found=-32602,
    signature=_SIGNATURE,
    seal=b',"resultType":"complete"' + _SIGNATURE,
)
