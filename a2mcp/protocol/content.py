r"""How a tool's result goes over the wire.

Owns the bytes of ``result`` in the answer to ``tools/call``. Whatever a tool returned, it comes out as valid JSON in
valid UTF-8: a lone surrogate becomes visible as ``\ud83d``, a number that JSON cannot say becomes ``null``, and a kind
of content that the dialect does not know becomes the text of its JSON (seed, "tools/call").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from a2mcp.tools.result import OURS, Block, ResourceLink, Result, Text

if TYPE_CHECKING:
    from a2mcp.protocol.dialects import Dialect
    from a2mcp.types import JsonObject

T = TypeVar("T")

_ENCODE: Final = msgspec.json.Encoder().encode


class _Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    content: tuple[Block, ...]
    is_error: bool
    structured_content: JsonObject | None = None


def encode_result(result: Result, dialect: Dialect) -> bytes:
    """Encode the result of a call as this dialect has it, with what it puts into every result."""
    content = result.content
    if any(_kind(block) not in dialect.blocks for block in content):
        content = tuple(_folded(block, dialect) for block in content if not _is_spare(block, dialect))
    wire = _Wire(content, result.is_error, result.structured if dialect.structured else None)
    try:
        encoded = _ENCODE(wire)
    except UnicodeEncodeError:
        encoded = _ENCODE(_repaired(wire))
    return dialect.sealed(encoded)


def _kind(block: Block) -> str:
    return str(block.__struct_config__.tag)


def _is_spare(block: Block, dialect: Dialect) -> bool:
    """Whether a block only says where to read on what the text has told, to a client that cannot read it there."""
    return isinstance(block, ResourceLink) and block.uri.startswith(OURS) and _kind(block) not in dialect.blocks


def _folded(block: Block, dialect: Dialect) -> Block:
    if _kind(block) in dialect.blocks:
        return block
    return Text(_ENCODE(_visible_block(block)).decode())


def _repaired(wire: _Wire) -> _Wire:
    blocks = tuple(_visible_block(block) for block in wire.content)
    return _Wire(blocks, wire.is_error, _visible(wire.structured_content))


def _visible_block(block: Block) -> Block:
    """Make every text in a block encodable."""
    return _visible_struct(block)


def _visible_struct(struct: T) -> T:
    changed = {name: _visible(getattr(struct, name)) for name in struct.__struct_fields__}  # type: ignore[attr-defined]
    return msgspec.structs.replace(struct, **changed)  # type: ignore[type-var]  # T is a struct.


def _visible(value: Any) -> Any:
    """Replace every lone surrogate, at any depth, by its escape."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_visible(key): _visible(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_visible(item) for item in value]
    if isinstance(value, msgspec.Struct):
        return _visible_struct(value)
    return value
