"""A session while a turn of it goes on, without a model and without a thread."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from a2mcp.errors import ToolError
from a2mcp.inference.conversation import MOST_QUESTIONS, Conversation
from a2mcp.inference.questions import Question
from a2mcp.inference.stage import Ended, Item, Line
from a2mcp.inference.transcript import MAIN, Kind, Outcome, new_session


class Clock:
    """Stands still."""

    def monotonic(self) -> float:
        return 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(0, UTC)


class Idle:
    """A stage on which a turn goes on until a test ends it."""

    def __init__(self) -> None:
        self.told = []

    def admit(self):
        pass

    def begin(self, prompt):
        pass

    def tell(self, item):
        self.told.append(item)

    def stop(self):
        pass

    def keep(self, happened):
        pass

    def answer(self, told):
        pass


def question(number: int) -> Question:
    return Question(id=f"q{number}", text="What?", by=None, waiter=None)


@pytest.fixture
def stage():
    return Idle()


@pytest.fixture
def conversation(stage):
    session = new_session(MAIN, "1970-01-01T00:00:00Z", title="", client=None, model=None)
    conversation = Conversation(session, stage, Clock())
    conversation.put(Item(line=Line(kind=Kind.PROMPT, text="Go.")))
    return conversation


def test_a_session_has_only_so_many_open_questions(conversation, stage):
    """Ours: every buffer has a size; nobody need wait for the answer to the question that he has asked."""
    for number in range(MOST_QUESTIONS):
        conversation.ask(question(number))
    with pytest.raises(ToolError, match="have no answer yet"):
        conversation.ask(question(MOST_QUESTIONS))
    assert len(stage.told) == MOST_QUESTIONS


def test_a_question_can_be_asked_again_once_others_are_given_up(conversation):
    """Ours: what a cancelled turn leaves open is given up."""
    for number in range(MOST_QUESTIONS):
        conversation.ask(question(number))
    conversation.ended(Ended(outcome=Outcome.CANCELLED, answer="Cancelled."))
    conversation.ask(question(MOST_QUESTIONS))
    assert conversation.running
