"""The decision about one call: run it, refuse it, or ask the operator first.

Owns the meaning of the setting ``approval``. Does not know how the operator is asked.
"""

from __future__ import annotations

import enum

import msgspec

from a2mcp.errors import ToolError
from a2mcp.tools.spec import Tier


class Mode(enum.StrEnum):
    """What is asked about when a tool has no rule of its own."""

    YOLO = "yolo"
    """Nothing."""
    WRITE = "write"
    """Whatever changes or executes something."""
    ALWAYS_ASK = "always-ask"
    """Everything."""


class Rule(enum.StrEnum):
    """What happens to a call."""

    ALLOW = "allow"
    DENY = "deny"
    PROMPT = "prompt"
    """It waits until the operator allows or denies it."""


class ApprovalSettings(msgspec.Struct, frozen=True):
    """The setting ``approval``. The default asks nothing: whoever holds the token acts with the operator's rights."""

    mode: Mode = Mode.YOLO
    tools: dict[str, Rule] = {}
    """A rule by name of the tool; it wins over the mode, in both directions."""
    ask_caller: bool = False
    """Whether the caller's user is asked instead of the operator, where the caller can be asked."""
    timeout_s: float | None = None
    """How long a call waits for the operator before it is refused; None for as long as its caller does."""


def decide(settings: ApprovalSettings, tool_name: str, tier: Tier, *, past_mode: bool = False) -> Rule:
    """Decide about a call of a tool; one that is ``past_mode`` is held by its own rule only."""
    rule = settings.tools.get(tool_name)
    if rule is not None:
        return rule
    return Rule.ALLOW if past_mode else _by_mode(settings.mode, tier)


def denied(tool_name: str) -> ToolError:
    """Make the error for a call that the settings deny."""
    return ToolError(
        f"The operator's settings deny the tool '{tool_name}'.",
        hint="Use another tool, or ask the operator to allow it.",
    )


def _by_mode(mode: Mode, tier: Tier) -> Rule:
    if mode is Mode.ALWAYS_ASK or (mode is Mode.WRITE and tier is not Tier.READ):
        return Rule.PROMPT
    return Rule.ALLOW
