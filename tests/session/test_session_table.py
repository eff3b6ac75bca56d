"""The session table: cap, idle time, ids."""

import inspect
import uuid
from datetime import UTC, datetime

import pytest

from a2mcp.session import table as module
from a2mcp.session.table import IDLE_S, SessionTable


class HandClock:
    """A clock that the test turns."""

    def __init__(self):
        self.t = 1000.0
        self.wall = datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self):
        return self.t

    def now(self):
        return self.wall


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def table(clock):
    return SessionTable(clock=clock)


@pytest.mark.parametrize(("idle", "alive"), [(IDLE_S - 1, True), (IDLE_S, False), (IDLE_S + 1, False)])
def test_a_session_is_gone_after_a_day_without_a_message(table, clock, idle, alive):
    """Row S02; seed, sessions: 24 h idle. Exactly 24 h is gone (ours)."""
    session = table.open()
    clock.t += idle
    assert table.touch(session) is alive


def test_every_hit_starts_the_idle_time_again(table, clock):
    """Row S02; seed, sessions: every hit refreshes the timer."""
    session = table.open()
    for _ in range(5):
        clock.t += IDLE_S - 1
        assert table.touch(session)


def test_a_jump_of_the_wall_clock_ends_nothing(table, clock):
    """Row S02: the wall clock going back an hour or forward ten years has no effect."""
    session = table.open()
    for year in (2025, 2036):
        clock.wall = clock.wall.replace(year=year)
        assert table.touch(session)


def test_five_hundred_openings_leave_the_last_sixty_four(table):
    """Row S03 (plain): 500 distinct ids, a table of 64."""
    opened = [table.open() for _ in range(500)]
    assert len(set(opened)) == 500
    assert len(table) == 64
    assert [table.touch(session) for session in opened] == [False] * 436 + [True] * 64


def test_the_least_recently_seen_session_makes_room(clock):
    """Seed, sessions: at the cap, the one that was not seen for longest is evicted by a new initialize."""
    table = SessionTable(clock=clock, limit=3)
    first, second, third = (table.open() for _ in range(3))
    assert table.touch(first)
    fourth = table.open()
    assert [table.touch(session) for session in (first, second, third, fourth)] == [True, False, True, True]


def test_idle_sessions_are_forgotten_before_a_live_one_is_evicted(clock):
    """Seed, errors: expired entries are cleared on the way."""
    table = SessionTable(clock=clock, limit=2, idle_s=10)
    table.open()
    clock.t += 9
    live = table.open()
    clock.t += 1
    assert len(table) == 1
    table.open()
    assert table.touch(live)


def test_closing_is_final_and_harmless_to_repeat(table):
    """Row S07 (plain): DELETE of an unknown or closed session is fine."""
    session, other = table.open(), table.open()
    for _ in range(2):
        table.close(session)
    table.close("never issued")
    assert not table.touch(session)
    assert table.touch(other)
    assert len(table) == 1


def test_only_the_exact_id_is_the_session(table):
    """Row S05: near guesses, upper case, spaces, lists and long texts are unknown and change nothing."""
    session = table.open()
    last = "0" if session[-1] != "0" else "1"
    wrong = ["", session[:-1] + last, f" {session}", f"{session} ", f"{session}, {session}", "x" * 2**20]
    wrong += [f"{session}\r\nx: y", session.replace("-", ""), f"{{{session}}}"]
    if session.upper() != session:
        wrong.append(session.upper())
    assert not any(table.touch(guess) for guess in wrong)
    assert table.touch(session)
    assert len(table) == 1


def test_ids_are_random_uuids(clock):
    """Row S09: ten thousand ids are distinct and come from uuid4."""
    table = SessionTable(clock=clock, limit=10_000)
    opened = {table.open() for _ in range(10_000)}
    assert len(opened) == 10_000
    assert all(str(uuid.UUID(session)) == session and uuid.UUID(session).version == 4 for session in opened)
    assert "uuid.uuid4()" in inspect.getsource(module)


def test_a_session_that_nobody_closed_is_told_of(clock):
    """Issue 6, item 3: those who watch see a session end."""
    gone = []
    table = SessionTable(clock=clock, limit=2, forgotten=lambda session, why: gone.append((session, why)))
    first, second, closed = table.open(), table.open(), table.open()
    table.close(closed)
    clock.t += IDLE_S
    assert len(table) == 0

    assert gone == [(first, "to make room"), (second, "idle")]
