"""Codes and visits of the operator's page: once, for a time, and bounded."""

from __future__ import annotations

import datetime as dt

import pytest

from a2mcp.auth.visit import CODE_S, CODES, VISIT_S, VISITS, Visits


class Turned:
    """A clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.at = 1000.0

    def monotonic(self) -> float:
        return self.at

    def now(self) -> dt.datetime:
        return dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def clock() -> Turned:
    return Turned()


@pytest.fixture
def visits(clock: Turned) -> Visits:
    return Visits(clock)


def test_a_code_begins_one_visit(visits):
    """Issue 6.1: one-time; the second use is refused."""
    code = visits.invite()
    visit = visits.enter(code)

    assert visit is not None
    assert visits.knows(visit.cookie, visit.key)
    assert visits.enter(code) is None


@pytest.mark.parametrize("code", ["", "x", "ü", "\ud800", "a" * 10_000])
def test_what_is_no_code_begins_nothing(visits, code):
    """Ours: whatever is sent."""
    visits.invite()

    assert visits.enter(code) is None


def test_a_code_that_waited_too_long_is_dead(visits, clock):
    """Issue 6.1: expiry."""
    code = visits.invite()
    clock.at += CODE_S + 0.001

    assert visits.enter(code) is None


def test_a_visit_ends_by_itself_and_when_it_is_left(visits, clock):
    """Issue 6.1."""
    left, stays = (visits.enter(visits.invite()) for _ in range(2))
    visits.leave(left.cookie, left.key)
    assert not visits.knows(left.cookie, left.key)
    assert visits.knows(stays.cookie, stays.key)

    clock.at += VISIT_S + 0.001
    assert not visits.knows(stays.cookie, stays.key)


def test_half_of_a_visit_is_none(visits):
    """Ours: a server on another port of this machine is given the cookie, and has nothing."""
    one, other = (visits.enter(visits.invite()) for _ in range(2))

    assert not visits.knows(one.cookie, "")
    assert not visits.knows("", one.key)
    assert not visits.knows(one.cookie, other.key)
    assert not visits.knows(one.key, one.cookie)


def test_codes_and_visits_are_bounded_and_the_oldest_goes(visits):
    """Issue 6.1, STYLE 12."""
    codes = [visits.invite() for _ in range(CODES + 1)]
    assert visits.enter(codes[0]) is None
    first = visits.enter(codes[1])

    for _ in range(VISITS):
        visits.enter(visits.invite())
    assert not visits.knows(first.cookie, first.key)


def test_another_run_of_the_daemon_knows_nothing_of_the_visits_of_this_one(visits, clock):
    """Issue 6.1: bound to this daemon run."""
    visit = visits.enter(visits.invite())

    assert not Visits(clock).knows(visit.cookie, visit.key)
