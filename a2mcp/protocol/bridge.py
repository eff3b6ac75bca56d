"""The methods of the bridge dialect: what each is answered with (seed, "Methods").

The bridge speaks one version whatever is asked, keeps sessions, and knows tools and nothing else. Knows no HTTP.
"""

from __future__ import annotations

from typing import Final

import msgspec

from a2mcp import __version__

VERSION: Final = "2025-11-25"
NOTIFICATION: Final = "notifications/"
CANCELLED: Final = "notifications/cancelled"
EMPTY: Final = b"{}"

INITIALIZED: Final = msgspec.json.encode(
    {
        "protocolVersion": VERSION,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "a2mcp", "version": __version__},
    }
)
"""The result of ``initialize``."""


class CallParams(msgspec.Struct, frozen=True):
    """The parameters of ``tools/call``. A missing name is the empty one, which is not exposed."""

    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw()


_call_decoder = msgspec.json.Decoder(CallParams)


def call_params(params: msgspec.Raw) -> CallParams | None:
    """Read the parameters of ``tools/call``; None when they are no object or the name is no string."""
    raw = bytes(params)
    if raw in (b"", b"null"):
        return CallParams()
    try:
        return _call_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def listed(catalog: bytes) -> bytes:
    """The result of ``tools/list``: one page with everything; a cursor is ignored."""
    return b'{"tools":%b}' % catalog
