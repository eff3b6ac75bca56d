"""``Mcp-Param-*``: arguments that a client repeats as headers, where a tool's schema asks for it with ``x-mcp-header``.

So a proxy can route by an argument without reading the body. What is repeated must be what the body says.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.errors import HeaderMismatch
from a2mcp.protocol.eras import decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2mcp.types import JsonObject

KEYWORD: Final = "x-mcp-header"
PREFIX: Final = "Mcp-Param-"
_SCALARS: Final = ("string", "integer", "boolean")


def check(schema: JsonObject, arguments: msgspec.Raw, header: Callable[[str], str | None]) -> None:
    """Hold the headers against the arguments.

    Raises:
        HeaderMismatch: one is missing, or says something else.
    """
    wanted = list(mirrored(schema))
    if not wanted:
        return
    try:
        given = msgspec.json.decode(arguments) if arguments else {}
    except (msgspec.DecodeError, RecursionError):
        return  # Refused by name when the arguments are decoded for the tool.
    for name, path in wanted:
        value = value_at(given, path)
        sent = decoded(header((PREFIX + name).upper()))
        if (value is None) != (sent is None) or (sent is not None and not _same(sent, value)):
            raise HeaderMismatch(f"header mismatch: {PREFIX}{name} does not repeat the argument {'.'.join(path)}")


def mirrored(schema: JsonObject, path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Name each header that a schema asks for, without its prefix, and the path of the argument it repeats."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, member in properties.items():
        if not isinstance(member, dict):
            continue
        mirror = member.get(KEYWORD)
        if isinstance(mirror, str) and mirror and member.get("type") in _SCALARS:
            yield mirror, (*path, name)
        yield from mirrored(member, (*path, name))


def value_at(value: Any, path: tuple[str, ...]) -> Any:
    """Follow a path into the arguments; None where it leads nowhere."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _same(sent: str, value: Any) -> bool:
    if isinstance(value, bool):
        return sent == ("true" if value else "false")
    if isinstance(value, int | float):
        return _same_number(sent, value)
    return bool(sent == value)


def _same_number(sent: str, value: float) -> bool:
    try:
        # Exactly, since an integer past 2**53 is no float; ``42.0`` says 42 all the same.
        return Decimal(sent) == Decimal(value)
    except InvalidOperation:
        return False
