"""How a tool asks the caller: it says what it needs to know and is run again once that is known.

No thread waits for a person. A tool calls ``elicit`` or ``ask`` with a key; when the answer is there it is returned,
else the run ends with ``InputRequired`` and begins anew with the answers. What comes before a question happens again,
so ask first and act afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2mcp.tools.result import SAMPLE, Question

if TYPE_CHECKING:
    from a2mcp.tools.context import Context
    from a2mcp.types import JsonObject


class InputRequired(Exception):
    """The run cannot go on without these answers."""

    def __init__(self, questions: dict[str, Question], state: str | None = None) -> None:
        super().__init__("input required")
        self.questions = questions
        self.state = state


def elicit(context: Context, key: str, message: str, schema: JsonObject) -> JsonObject:
    """Have the caller's user asked; returns ``{"action": "accept" | "decline" | "cancel", "content": …}``.

    Raises:
        InputRequired: the answer is not there yet.
    """
    return ask(context, {key: elicitation(message, schema)})[key]


def ask(context: Context, questions: dict[str, Question], state: str | None = None) -> dict[str, JsonObject]:
    """Have several things asked at once; returns the answers by key.

    Raises:
        InputRequired: at least one is not there yet, or is no answer to its question.
    """
    given = context.answers
    answers = {key: given[key] for key, question in questions.items() if _answers(given.get(key), question)}
    if len(answers) < len(questions):
        raise InputRequired({key: question for key, question in questions.items() if key not in answers}, state)
    return answers


def possible(context: Context, questions: dict[str, Question]) -> dict[str, Question]:
    """Leave out what the caller says it cannot be asked; where it says nothing, only asking will tell."""
    able = context.capabilities
    if able is None:
        return questions
    return {key: question for key, question in questions.items() if question.capability.keys() <= able.keys()}


def elicitation(message: str, schema: JsonObject, *, optional: bool = False) -> Question:
    """Make a question to the caller's user, answered by a form."""
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return Question("elicitation/create", params, optional=optional)


def _answers(value: Any, question: Question) -> bool:
    if not isinstance(value, dict):
        return False
    if question.method == "elicitation/create":
        return value.get("action") in ("accept", "decline", "cancel")
    if question.method == SAMPLE:
        return "content" in value
    return "roots" in value
