"""What a resource and a prompt are, as a client sees them."""

from __future__ import annotations

import msgspec

from a2mcp.tools.result import Block


class ResourceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something with an address that can be read."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


class TemplateSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Addresses of one form."""

    uri_template: str
    """RFC 6570."""
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


class PromptArgument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing to fill in."""

    name: str
    description: str | None = None
    required: bool = False


class PromptSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Words for a model, with places to fill in."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] = ()


class PromptMessage(msgspec.Struct, frozen=True):
    """One message of a prompt."""

    role: str
    """``user`` or ``assistant``."""
    content: Block


class PromptResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prompt, filled in."""

    description: str | None = None
    messages: tuple[PromptMessage, ...]
