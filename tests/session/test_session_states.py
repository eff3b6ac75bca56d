"""The session table against a list that a reader believes at a glance, in whatever order things happen."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant
from states import Machine, among, explore, step

from a2mcp.session.table import SessionTable

IDLE_S = 100.0


class Clock:
    def __init__(self):
        self.t = 5000.0
        self.wall = datetime(2026, 10, 16, tzinfo=UTC)

    def monotonic(self):
        return self.t

    def now(self):
        return self.wall


class Sessions(Machine):
    """The model is a list of ids with the moment each was seen, the least recent first."""

    @initialize(limit=st.integers(1, 4))
    def begin(self, limit):
        self.clock, self.limit = Clock(), limit
        self.ids: list[str] = []
        self.model: list[tuple[str, float]] = []
        self.ended: list[tuple[str, str]] = []
        self.told: list[tuple[str, str]] = []
        self.table = SessionTable(
            clock=self.clock,
            limit=limit,
            idle_s=IDLE_S,
            forgotten=lambda session, why: self.told.append((session, why)),
        )

    def expire(self):
        gone = [session for session, seen in self.model if self.clock.t - seen >= IDLE_S]
        self.ended += [(session, "idle") for session in gone]
        self.model = [(session, seen) for session, seen in self.model if session not in gone]

    @step(into="ids", weight=2)
    def open(self):
        self.expire()
        while len(self.model) >= self.limit:
            self.ended.append((self.model.pop(0)[0], "to make room"))
        session = self.table.open()
        assert session not in {known for known, _ in self.model}
        self.model.append((session, self.clock.t))
        return session

    @step()
    def guess(self):
        self.expire()
        assert not self.table.touch(str(uuid.uuid4()))

    @step(session=among("ids"))
    def touch(self, session):
        self.expire()
        known = [each for each in self.model if each[0] == session]
        assert self.table.touch(session) is bool(known)
        assert not self.table.touch(session.upper()) or session.upper() == session
        if known:
            self.model.remove(known[0])
            self.model.append((session, self.clock.t))

    @step(session=among("ids"))
    def close(self, session):
        self.table.close(session)
        self.model = [each for each in self.model if each[0] != session]

    @step(seconds=st.sampled_from([0.5, 1.0, 49.0, 99.5, 100.0, 300.0]))
    def time_goes_on(self, seconds):
        self.clock.t += seconds

    @step(year=st.integers(1999, 2099))
    def the_wall_clock_jumps(self, year):
        self.clock.wall = self.clock.wall.replace(year=year)

    @step()
    def list(self):
        self.expire()
        assert self.table.list() == [(session, self.clock.t - seen) for session, seen in self.model]
        assert len(self.table) == len(self.model)

    @step(session=among("ids"))
    def look(self, session):
        self.expire()
        assert (session in self.table) is (session in {known for known, _ in self.model})

    @invariant()
    def the_cap_holds_and_each_end_is_told_once(self):
        if hasattr(self, "table"):
            assert self.table.size <= self.limit
            assert self.told == self.ended[: len(self.told)]
            assert len(self.ended) - len(self.told) <= self.limit


def test_sessions_follow_their_model():
    """Issue 5, item 4; seed, sessions: the cap, the idle time, and who makes room for whom."""
    explore(Sessions, sequences=80)
