"""A whole HTTP response as a value."""

from __future__ import annotations

import msgspec

Headers = tuple[tuple[str, str], ...]


class Response(msgspec.Struct, frozen=True):
    """What goes back on a connection; every body we send is JSON or empty."""

    status: int
    body: bytes = b""
    headers: Headers = ()
