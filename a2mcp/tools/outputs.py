"""The schemas of structured results, for the tools whose results always have the same members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from a2mcp.types import JsonObject

TEXT: Final[JsonObject] = {"type": "string"}
NUMBER: Final[JsonObject] = {"type": "integer"}
FLAG: Final[JsonObject] = {"type": "boolean"}
MAYBE_TEXT: Final[JsonObject] = {"type": ["string", "null"]}
MAYBE_NUMBER: Final[JsonObject] = {"type": ["integer", "null"]}


def array(items: JsonObject) -> JsonObject:
    """Any number of these."""
    return {"type": "array", "items": items}


def members(*optional: str, **properties: JsonObject) -> JsonObject:
    """An object of these members, all of which are there but the optional ones.

    It is left open: a later version may say more.
    """
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}
