"""What of a caller's arguments may be written down.

Owns the folding of long strings, the bounds on depth and breadth, and that the value of a secret is left out; what a
secret is, ``masking`` knows. Knows nothing of records or files.
"""

import hashlib
from itertools import islice
from typing import Any

from a2mcp.masking import MASK, mask, names_secret

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
    and arrays becomes ``<max-depth>``, and members past the hundredth become one ``<more>``. What has the name of a
    secret becomes ``<secret>``, and so does each secret inside a string. The value itself is not touched, and no value
    is deep enough to exhaust the stack.

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
    """Keep a string of up to 120 characters, without its secrets; tell the length and a bit of hash of a longer one."""
    kept = text if len(text) > MAX_TEXT else mask(text)
    if len(kept) > MAX_TEXT:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"<len:{len(text)},sha256:{digest[:8]}>"
    if kept.isascii():
        return kept
    # Half a surrogate pair cannot be written as UTF-8; it is shown as U+FFFD instead of failing the record.
    return kept.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _object(members: dict[Any, Any], depth: int) -> dict[str, Any]:
    kept = {fold(str(key)): _member(str(key), value, depth) for key, value in islice(members.items(), MAX_ITEMS)}
    if len(members) > MAX_ITEMS:
        kept["<more>"] = len(members) - MAX_ITEMS
    return kept


def _member(name: str, value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value  # Neither "nothing" nor "yes" is a secret, whatever its name.
    # The end of a name says what it is. What is remembered of names is bounded by their length, too.
    secret = names_secret(name[-MAX_TEXT:], number=isinstance(value, int | float))
    return MASK if secret else redact(value, depth)


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
