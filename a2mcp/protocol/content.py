r"""How a tool's result goes over the wire.

Owns the bytes of ``result`` in the answer to ``tools/call``. Whatever a tool returned, it comes out as valid JSON in
valid UTF-8: a lone surrogate becomes visible as ``\ud83d``, and a number that JSON cannot say becomes ``null``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.tools.result import Block, Image, Result, Text

if TYPE_CHECKING:
    from a2mcp.types import JsonObject

_ENCODE: Final = msgspec.json.Encoder().encode


class _Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    content: tuple[Block, ...]
    is_error: bool
    structured_content: JsonObject | None = None


def encode_result(result: Result, *, structured: bool) -> bytes:
    """Encode the result of a call; ``structured`` tells whether the dialect carries ``structuredContent``."""
    wire = _Wire(result.content, result.is_error, result.structured if structured else None)
    try:
        return _ENCODE(wire)
    except UnicodeEncodeError:
        return _ENCODE(_repaired(wire))


def _repaired(wire: _Wire) -> _Wire:
    blocks = tuple(_repaired_block(block) for block in wire.content)
    return _Wire(blocks, wire.is_error, _visible(wire.structured_content))


def _repaired_block(block: Block) -> Block:
    if isinstance(block, Image):
        return block  # base64 and a media type: ASCII by construction
    return Text(_visible(block.text))


def _visible(value: Any) -> Any:
    """Replace every lone surrogate, at any depth, by its escape."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_visible(key): _visible(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_visible(item) for item in value]
    return value
