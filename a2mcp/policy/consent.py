"""Approval by the caller's own user: the question, and what its answer means.

Only asked with the setting ``approval.ask_caller``. Knows neither how a question travels nor who waits for it.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from a2mcp.policy.waiting import shown_arguments
from a2mcp.tools.asking import elicitation
from a2mcp.tools.result import Needs

if TYPE_CHECKING:
    from a2mcp.types import JsonObject

KEY: Final = "a2mcp-approval"
"""Of the answer among those of a call. It counts only where a question of ours is known to have been asked."""
DECLINED: Final = "Your user did not allow this call."


class Word(enum.Enum):
    """What the caller's user said."""

    NOTHING = enum.auto()
    """Nobody has asked yet."""
    YES = enum.auto()
    NO = enum.auto()
    UNABLE = enum.auto()
    """The client has nobody to ask."""


def question(tool: str, arguments: bytes) -> Needs:
    """Ask whether this call may run. Accepting is the answer; there is nothing to fill in."""
    asked = f"Allow this call of '{tool[:80]}' on the other machine?\n{shown_arguments(arguments)}"
    schema: JsonObject = {"type": "object", "properties": {}}
    return Needs({KEY: elicitation(asked, schema, optional=True)})


def word(answers: JsonObject) -> Word:
    """Read the answer. Whatever is not a plain yes is a no."""
    if KEY not in answers:
        return Word.NOTHING
    answer = answers[KEY]
    if answer is None:
        return Word.UNABLE
    accepted = isinstance(answer, dict) and answer.get("action") == "accept"
    return Word.YES if accepted else Word.NO


def without(answers: JsonObject) -> JsonObject:
    """Leave the answer out."""
    return {key: answer for key, answer in answers.items() if key != KEY}
