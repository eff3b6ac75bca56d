"""Lists in pages: an opaque cursor in, the next one out."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.errors import InvalidParams

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE: Final = 100
_MARK: Final = b"a2mcp:"


def page(name: str, items: Sequence[Any], cursor: Any) -> dict[str, Any]:
    """Cut the page that a cursor names out of a list.

    Raises:
        InvalidParams: the cursor is not one of ours.
    """
    start = 0 if cursor is None else _position(cursor, len(items))
    end = start + PAGE
    result: dict[str, Any] = {name: items[start:end]}
    if end < len(items):
        result["nextCursor"] = _cursor(end)
    return result


def _cursor(position: int) -> str:
    return base64.urlsafe_b64encode(_MARK + str(position).encode()).decode()


def _position(cursor: Any, length: int) -> int:
    try:
        position = int(base64.urlsafe_b64decode(cursor).removeprefix(_MARK))
    except (TypeError, ValueError):
        position = 0
    # The decoder passes over what is no base64, so only the one spelling that we gave counts.
    if not 0 < position < length or cursor != _cursor(position):
        raise InvalidParams("invalid params: unknown cursor", hint="Start again without one.")
    return position


def encoded(result: dict[str, Any], *, cacheable: bool) -> bytes:
    """Encode a list's result; in a dialect with caching, say that it holds for this caller and for how long."""
    return msgspec.json.encode(result | CACHE if cacheable else result)


CACHE: Final = {"ttlMs": 5000, "cacheScope": "private"}
"""Lists change when a tool is registered or dropped, which is told to who listens; the rest asks again soon."""
CACHED: Final = msgspec.json.encode(CACHE)
