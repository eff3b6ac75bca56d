"""What of a caller's arguments may be written down.

Owns the folding of long strings and the bounds on depth and breadth. Knows nothing of records or files.
"""

import hashlib
from itertools import islice
from typing import Any

MAX_TEXT = 120
"""Characters (code points, not bytes) that a string may have and still be written out."""
MAX_DEPTH = 32
"""How many objects and arrays a value may be inside of and still be written out."""
MAX_ITEMS = 100
"""Members of one object or array that are looked at; the whole summary has room for fewer."""
TOO_DEEP = "<max-depth>"

_INT64 = 63


def redact(value: Any, depth: int = 0) -> Any:
    """Copy a JSON value with its payloads folded, so that every result can be encoded.

    A string or key over 120 characters becomes ``<len:N,sha256:first 8>``, whatever lies inside more than 32 objects
    and arrays becomes ``<max-depth>``, and members past the hundredth become one ``<more>``. The value itself is not
    touched, and no value is deep enough to exhaust the stack.

    Args:
        value: anything that came out of JSON; what JSON does not know is written as its ``str``.
        depth: how many objects and arrays the value is inside of.
    """
    if depth > MAX_DEPTH:
        return TOO_DEEP
    if isinstance(value, str):
        return fold(value)
    if isinstance(value, dict):
        return _object(value, depth + 1)
    if isinstance(value, list | tuple):
        return _array(value, depth + 1)
    return _scalar(value)


def fold(text: str) -> str:
    """Keep a string of up to 120 characters; tell only the length and the beginning of the hash of a longer one."""
    if len(text) > MAX_TEXT:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"<len:{len(text)},sha256:{digest[:8]}>"
    if text.isascii():
        return text
    # Half a surrogate pair cannot be written as UTF-8; it is shown as U+FFFD instead of failing the record.
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _object(members: dict[Any, Any], depth: int) -> dict[str, Any]:
    kept = {fold(str(key)): redact(value, depth) for key, value in islice(members.items(), MAX_ITEMS)}
    if len(members) > MAX_ITEMS:
        kept["<more>"] = len(members) - MAX_ITEMS
    return kept


def _array(items: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
    kept = [redact(item, depth) for item in items[:MAX_ITEMS]]
    if len(items) > MAX_ITEMS:
        kept.append(f"<more:{len(items) - MAX_ITEMS}>")
    return kept


def _scalar(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > _INT64:
        # The encoder writes 64 bits only, and str() of a very long number is slow or refused.
        return f"<int:{value.bit_length()} bits>"
    if value is None or isinstance(value, int | float):
        return value
    return fold(str(value))
