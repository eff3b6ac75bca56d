"""What a tool returns: content blocks for the model, and the same as data where the dialect carries it."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from a2mcp.types import JsonObject


class Text(msgspec.Struct, frozen=True, tag="text", tag_field="type"):
    """A block of text. Must be encodable as UTF-8: lone surrogates are replaced before they get here."""

    text: str


class Image(msgspec.Struct, frozen=True, tag="image", tag_field="type", rename={"mime_type": "mimeType"}):
    """An image; ``data`` is base64."""

    data: str
    mime_type: str


Block = Text | Image


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one call."""

    content: tuple[Block, ...]
    is_error: bool = False
    structured: JsonObject | None = None


class _Pending(enum.Enum):
    PENDING = "pending"


PENDING: Final = _Pending.PENDING
"""Returned by a tool whose call another actor completes later; no thread waits for it."""

Outcome = Result | Literal[_Pending.PENDING]


def text(body: str, *, is_error: bool = False, structured: JsonObject | None = None) -> Result:
    """Make a result of one text block."""
    return Result(content=(Text(body),), is_error=is_error, structured=structured)
