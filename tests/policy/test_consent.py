"""Consent of the caller's user: what counts as a yes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.policy import consent
from a2mcp.policy.consent import KEY, Word

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@pytest.mark.parametrize(
    ("answers", "word"),
    [
        ({}, Word.NOTHING), ({"other": {"action": "accept"}}, Word.NOTHING), ({KEY: None}, Word.UNABLE),
        ({KEY: {"action": "accept"}}, Word.YES), ({KEY: {"action": "decline"}}, Word.NO),
        ({KEY: {"action": "cancel"}}, Word.NO), ({KEY: {}}, Word.NO), ({KEY: "accept"}, Word.NO),
        ({KEY: {"action": ["accept"]}}, Word.NO),
    ],
)  # fmt: skip
def test_only_a_plain_yes_is_one(answers, word):
    """Issue §5: declined is isError; ours: in doubt, no."""
    assert consent.word(answers) is word


@given(answer=JSON)
def test_no_other_answer_is_a_yes(answer):
    """Ours: fails closed."""
    said = consent.word({KEY: answer})
    assert (said is Word.YES) == (isinstance(answer, dict) and answer.get("action") == "accept")


def test_the_question_shows_what_would_run():
    """Issue §5: the user judges by it; a long one is cut and says so."""
    (question,) = consent.question("bash", b'{"command":"rm x"}').questions.values()
    (long,) = consent.question("write", b"x" * 100_000).questions.values()

    assert "bash" in question.params["message"]
    assert '{"command":"rm x"}' in question.params["message"]
    assert question.optional
    assert "more bytes" in long.params["message"]


def test_the_answer_can_be_left_out():
    """Ours: a call that waits for the operator is no longer one that was answered."""
    assert consent.without({KEY: None, "mine": 1}) == {"mine": 1}
