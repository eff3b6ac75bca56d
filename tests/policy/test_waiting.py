"""The calls that wait for the operator."""

from datetime import UTC, datetime, timedelta

import pytest

from a2mcp.errors import Busy
from a2mcp.policy.waiting import MOST_SHOWN, Request, Waiting, random_id, shown_arguments


class Turned:
    """A clock that goes a second further each time it is read."""

    def __init__(self):
        self.time = datetime(2026, 10, 16, tzinfo=UTC)

    def monotonic(self):
        return (self.time - datetime(2026, 10, 16, tzinfo=UTC)).total_seconds()

    def now(self):
        self.time += timedelta(seconds=1)
        return self.time


def add(waiting, held, call_id="c1"):
    return waiting.add(held, call_id=call_id, tool="bash", args='{"command":"ls"}', session_id="s1")


def test_a_call_that_waits_is_listed_as_the_operator_needs_it():
    """Source: issue (the operator sees it)."""
    waiting = Waiting(8, Turned(), iter(["k7f3a"]).__next__)
    request = add(waiting, "held")
    assert request == Request(
        id="k7f3a",
        call_id="c1",
        tool="bash",
        args='{"command":"ls"}',
        session_id="s1",
        since=datetime(2026, 10, 16, 0, 0, 1, tzinfo=UTC),
    )
    assert list(waiting.list()) == [request]
    assert len(waiting) == 1


def test_the_oldest_stands_first():
    """Source: ours."""
    waiting = Waiting(8, Turned())
    requests = [add(waiting, number, f"c{number}") for number in range(5)]
    assert list(waiting.list()) == requests == sorted(requests, key=lambda request: request.since)


def test_a_call_is_answered_once():
    """Source: ours (two operators, one answer)."""
    waiting = Waiting(8, Turned())
    held = object()
    request = add(waiting, held)
    assert waiting.answer(request.id) is held
    assert waiting.answer(request.id) is None
    assert len(waiting) == 0


def test_an_id_that_nobody_has_answers_nothing():
    """Source: ours."""
    waiting = Waiting(8, Turned())
    add(waiting, "held")
    assert waiting.answer("zzzzz") is None
    assert len(waiting) == 1


def test_a_call_that_nobody_wants_any_more_is_forgotten():
    """Source: ours (the client went away)."""
    waiting = Waiting(8, Turned())
    first, second = add(waiting, "first", "c1"), add(waiting, "second", "c2")
    assert waiting.forget("c1") == "first"
    assert waiting.forget("c1") is None
    assert waiting.answer(first.id) is None
    assert list(waiting.list()) == [second]


def test_one_more_than_the_cap_is_refused_until_one_is_answered():
    """Source: STYLE 12 (every buffer has a chosen size)."""
    waiting = Waiting(2, Turned())
    first = add(waiting, "first", "c1")
    add(waiting, "second", "c2")
    with pytest.raises(Busy, match="2 calls already wait"):
        add(waiting, "third", "c3")
    waiting.answer(first.id)
    add(waiting, "third", "c3")
    assert len(waiting) == 2


def test_an_id_in_use_is_not_given_twice():
    """Source: ours."""
    waiting = Waiting(8, Turned(), iter(["a", "a", "a", "b"]).__next__)
    assert [add(waiting, 1).id, add(waiting, 2).id] == ["a", "b"]


def test_ids_are_short_and_have_no_characters_that_look_alike():
    """Source: ours (the operator types them)."""
    ids = {random_id() for _ in range(200)}
    assert len(ids) > 190
    assert all(len(one) == 5 and not set(one) & set("0o1il") for one in ids)


def test_the_operator_sees_a_long_command_whole() -> None:
    """Ours: what is approved must have been readable; the folding of the audit log would hide it."""
    command = b'{"command":"' + b"echo x; " * 400 + b'rm -rf data"}'

    assert shown_arguments(command) == command.decode()


def test_what_is_too_long_to_read_says_how_much_is_missing() -> None:
    """Ours: every buffer has a chosen size, and what it cuts is said."""
    shown = shown_arguments(b"x" * (MOST_SHOWN + 7))

    assert shown.endswith("… (7 more bytes)")
