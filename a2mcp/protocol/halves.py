r"""Finds the half character (``"\ud83d"`` with no partner) in JSON that is well-formed but for it.

The grammar allows it and models write it, so it is answered by name: where it stands, as it was spelled.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPELLED: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_LARGEST: Final = 1 << 20
"""Bytes of a body for which a parse error is looked into further."""


def find(body: bytes) -> tuple[str, bytes] | None:
    """Look for half a character in a body that the decoder refused.

    Returns:
        Where it stands and how it was spelled, in words; and the id of the message as JSON. None when the body is wrong
        for another reason.
    """
    spelled = _SPELLED.search(body) if len(body) <= _LARGEST else None
    if spelled is None:
        return None
    try:
        value = json.loads(body, parse_constant=_no_constant)
        place = next(_places(value, ""), "")
    except (ValueError, RecursionError):
        return None
    where = f"'{place}': " if place else ""
    return f"{where}{spelled[0].decode()} is half of a surrogate pair", _id_of(value)


def _no_constant(name: str) -> None:
    """Refuse ``NaN`` and ``Infinity``, which Python's own parser would take."""
    raise ValueError(name)


def _places(value: Any, path: str) -> Iterator[str]:
    """The paths of the strings that are not whole, names and values alike."""
    if isinstance(value, str) and _is_half(value):
        yield path
    elif isinstance(value, dict):
        for name, member in value.items():
            inner = f"{path}.{_visible(name)}".lstrip(".")
            if _is_half(name):
                yield inner
            yield from _places(member, inner)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, f"{path}[{index}]")


def _is_half(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _visible(name: str) -> str:
    return name[:80].encode("utf-8", "backslashreplace").decode("utf-8")


def _id_of(value: Any) -> bytes:
    given = value.get("id") if isinstance(value, dict) else None
    is_id = isinstance(given, str | int) and not isinstance(given, bool)
    return json.dumps(given).encode() if is_id else b"null"
