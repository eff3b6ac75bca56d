"""What a tool returns: content blocks for the model, and the same as data where the dialect carries it."""

from __future__ import annotations

import enum
from typing import Final, Literal

import msgspec

from a2mcp.errors import A2mcpError
from a2mcp.types import JsonObject

OURS: Final = "a2mcp://"
"""What the addresses of the product's own resources begin with."""


class Text(msgspec.Struct, frozen=True, tag="text", tag_field="type"):
    """A block of text. Must be encodable as UTF-8: lone surrogates are replaced before they get here."""

    text: str


class Image(msgspec.Struct, frozen=True, tag="image", tag_field="type", rename={"mime_type": "mimeType"}):
    """An image; ``data`` is base64."""

    data: str
    mime_type: str


class Audio(msgspec.Struct, frozen=True, tag="audio", tag_field="type", rename={"mime_type": "mimeType"}):
    """A sound; ``data`` is base64."""

    data: str
    mime_type: str


class ResourceLink(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="resource_link",
    tag_field="type",
    rename={"mime_type": "mimeType"},
    omit_defaults=True,
):
    """The address of something that the caller can read with ``resources/read``."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """Bytes."""


class ResourceContents(msgspec.Struct, frozen=True, kw_only=True, rename={"mime_type": "mimeType"}, omit_defaults=True):
    """What a resource holds: ``text``, or ``blob`` in base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


class EmbeddedResource(msgspec.Struct, frozen=True, tag="resource", tag_field="type"):
    """A resource, sent along."""

    resource: ResourceContents


Block = Text | Image | Audio | ResourceLink | EmbeddedResource


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one call."""

    content: tuple[Block, ...]
    is_error: bool = False
    structured: JsonObject | None = None


class Pending(enum.Enum):
    """The kind of ``PENDING``, which is its only value."""

    PENDING = "pending"


PENDING: Final = Pending.PENDING
"""Returned by a tool whose call another actor completes later; no thread waits for it."""


SAMPLE: Final = "sampling/createMessage"
"""The question to a model."""


class Question(msgspec.Struct, frozen=True):
    """One request to the caller."""

    method: str
    params: JsonObject
    optional: bool = False
    """Whether a client that cannot answer ends nothing: the answer is None then."""

    @property
    def capability(self) -> JsonObject:
        """What the caller must be able to do, as it would declare it."""
        kind = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling"}.get(self.method, "roots")
        return {kind: {}}


class Needs(msgspec.Struct, frozen=True):
    """The outcome of a run that asked."""

    questions: dict[str, Question]
    state: str | None = None
    """The tool's own, given back to it with the answers."""


class Encoded(msgspec.Struct, frozen=True):
    """The outcome of a call that is no tool's: the JSON of its ``result`` object."""

    body: bytes
    is_error: bool = False
    sealed: bool = True
    """Whether it is complete; where not, the dialect does not add that it is."""
    cacheable: bool = False
    """Whether a dialect that speaks of such things says how long it holds."""


class Refusal(msgspec.Struct, frozen=True):
    """The outcome of a call that the protocol has an error for."""

    error: A2mcpError


Outcome = Result | Refusal | Encoded | Needs | Literal[Pending.PENDING]


def text(body: str, *, is_error: bool = False, structured: JsonObject | None = None) -> Result:
    """Make a result of one text block."""
    return Result(content=(Text(body),), is_error=is_error, structured=structured)
