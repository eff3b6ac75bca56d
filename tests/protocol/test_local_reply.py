"""The reply of a call that the daemon makes itself."""

from __future__ import annotations

import pytest

from a2mcp.protocol.localreply import LocalReply
from a2mcp.protocol.response import Response


@pytest.fixture
def answers():
    return []


@pytest.fixture
def reply(answers):
    return LocalReply(answers.append)


def test_the_first_response_is_given_on_and_later_ones_change_nothing(reply, answers):
    """Source: the promise of ``Reply.complete``."""
    assert reply.complete(Response(200, b"1"))
    assert not reply.complete(Response(200, b"2"))
    assert [response.body for response in answers] == [b"1"]


def test_whoever_works_on_the_answer_hears_once_that_nobody_waits(reply):
    """Source: the promise of ``Reply.when_gone``."""
    told = []
    reply.when_gone(lambda: told.append("gone"))
    reply.leave()
    reply.leave()
    assert told == ["gone"]


def test_who_asks_after_the_waiting_has_ended_is_told_at_once(reply):
    """Source: the promise of ``Reply.when_gone``: at once when it has left already."""
    told = []
    reply.leave()
    reply.when_gone(lambda: told.append("gone"))
    assert told == ["gone"]


def test_nothing_is_cancelled_once_the_answer_is_there(reply):
    """Ours: a call that has ended cannot be cancelled."""
    told = []
    reply.when_gone(lambda: told.append("gone"))
    reply.complete(Response(200))
    reply.leave()
    assert told == []
