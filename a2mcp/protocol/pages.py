"""Lists in pages: an opaque cursor in, the next one out."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.errors import InvalidParams

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE: Final = 100
_MARK: Final = b"a2mcp:"


def page(name: str, items: Sequence[Any], cursor: Any, *, size: int = PAGE) -> dict[str, Any]:
    """Cut the page that a cursor names out of a list.

    Raises:
        InvalidParams: the cursor is not one of ours.
    """
    start = _position(cursor, len(items))
    result: dict[str, Any] = {name: items[start : start + size]}
    if start + size < len(items):
        result["nextCursor"] = base64.urlsafe_b64encode(_MARK + str(start + size).encode()).decode()
    return result


def _position(cursor: Any, length: int) -> int:
    if cursor is None:
        return 0
    try:
        mark, digits = base64.urlsafe_b64decode(cursor).split(b":")
        position = int(digits)
    except (TypeError, ValueError, binascii.Error) as cause:
        raise InvalidParams("invalid params: unknown cursor", hint="Start again without one.") from cause
    if mark + b":" != _MARK or not 0 < position < length:
        raise InvalidParams("invalid params: unknown cursor", hint="Start again without one.")
    return position


def encoded(result: dict[str, Any], *, cacheable: bool) -> bytes:
    """Encode a list's result; in a dialect with caching, say that it holds for this caller and for how long."""
    if cacheable:
        result |= CACHE
    return msgspec.json.encode(result)


CACHE: Final = {"ttlMs": 5000, "cacheScope": "private"}
"""Lists change when a tool is registered or dropped, which is told to who listens; the rest asks again soon."""
