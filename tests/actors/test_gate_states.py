"""Approvals against a model: who waits, what is granted and until when, with two operators and clocks that jump."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant
from living import call_of
from states import Machine, among, explore, seldom, step

from a2mcp.errors import A2mcpError
from a2mcp.policy.grants import Grants, Scope, Word
from a2mcp.policy.waiting import Waiting
from actors import gate
from actors.gate import Gate
from actors.ref import Mailbox, Ref

CAP = 5
TOOLS = ("bash", "write")
SESSIONS = ("s1", "s2", None)


class Clocks:
    """Both clocks, which a rule moves together or apart."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.wall = datetime(2026, 10, 16, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> Any:
        return self.wall

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds
        self.wall += timedelta(seconds=seconds)


class Granted:
    """A grant as the model keeps it: in force while neither clock has reached its end."""

    def __init__(self, clock: Clocks, tool: str, session: str | None, for_s: float | None) -> None:
        self.tool, self.session, self.for_s = tool, session, for_s
        self.deadline = None if for_s is None else clock.seconds + for_s
        self.ends = None if for_s is None else clock.wall + timedelta(seconds=for_s)
        self.id = ""

    def in_force(self, clock: Clocks) -> bool:
        return self.deadline is None or self.ends is None or (clock.seconds < self.deadline and clock.wall < self.ends)

    def covers(self, tool: str, session: str | None) -> bool:
        return self.tool == tool and self.session in (None, session)


class Approvals(Machine):
    """The model: the calls that wait, in their order, the grants in force, and what each call was told."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.clock = Clocks()
        self.told = Mailbox("Executor", 100_000)
        self.waiting: Waiting[gate.Held] = Waiting(CAP, self.clock)
        self.waits: list[str] = []
        self.grants_made: list[str] = []
        self.model: dict[str, tuple[Any, float]] = {}
        self.granted: list[Granted] = []
        self.expected: dict[str, str | None] = {}
        self.answers: dict[str, str | None] = {}
        self.lives()

    def lives(self) -> None:
        self.grants = Grants(self.folder / "grants.json", self.clock)
        self.actor = Gate(Gate.mailbox_for("Gate"), waiting=self.waiting, grants=self.grants)

    def covered(self, call: Any) -> bool:
        return any(g.in_force(self.clock) and g.covers(call.tool, call.session_id) for g in self.granted)

    # --- calls ----------------------------------------------------------------------------------------------------

    @step(into="waits", weight=5, tool=st.sampled_from(TOOLS), session=st.sampled_from(SESSIONS))
    def comes(self, tool: str, session: str | None) -> Any:
        call, _ = call_of(tool, b'{"command":"ls"}', session)
        if self.covered(call):
            self.expected[call.call_id] = None
        elif len(self.model) >= CAP:
            self.expected[call.call_id] = "5 calls already wait for approval. Try again once the operator has answered."
        self.actor.receive(gate.Wait(call, Ref(self.told)))
        if call.call_id in self.expected:
            return None
        request = list(self.waiting.list())[-1]
        assert request.call_id == call.call_id
        self.model[request.id] = (call, self.clock.seconds)
        return request.id

    @step(request_id=among("waits"))
    def ends_elsewhere(self, request_id: str) -> None:
        """Its caller has left, and the gate is not told yet."""
        if request_id in self.model:
            self.model[request_id][0].claim()

    @step(request_id=among("waits"))
    def is_withdrawn(self, request_id: str) -> None:
        if request_id in self.model:
            call, _ = self.model.pop(request_id)
            call.claim()
            self.actor.receive(gate.Forget(call.call_id))
            self.actor.receive(gate.Forget(call.call_id))

    # --- two operators --------------------------------------------------------------------------------------------

    @step(request_id=among("waits"), reason=st.sampled_from(["", "no"]))
    def an_operator_denies(self, request_id: str, reason: str) -> None:
        call = self.model[request_id][0] if request_id in self.model else None
        verdict = self.actor.receive(gate.Answer(request_id, Word(approve=False, reason=reason)))
        assert verdict.counted is (call is not None and not call.has_ended())
        assert verdict.grant is None
        if verdict.counted:
            self.let_go(request_id, "The operator denied this call" + (f": {reason}" if reason else "."))

    @step(
        into="grants_made",
        weight=4,
        request_id=among("waits"),
        scope=st.sampled_from(list(Scope)),
        for_s=st.sampled_from([None, 10.0, 60.0]),
    )
    def an_operator_approves(self, request_id: str, scope: Scope, for_s: float | None) -> Any:
        call = self.model[request_id][0] if request_id in self.model else None
        ask = gate.Answer(request_id, Word(approve=True, scope=scope, for_s=for_s))
        if call is not None and not call.has_ended() and scope is Scope.SESSION and call.session_id is None:
            try:
                self.actor.receive(ask)
            except A2mcpError:
                return None
            raise AssertionError("a grant for a session that there is not")
        verdict = self.actor.receive(ask)
        assert verdict.counted is (call is not None and not call.has_ended())
        assert not (verdict.counted and verdict.earlier)
        if call is None or not verdict.counted:
            assert verdict.grant is None, "nothing is granted by a word about a call that is no more"
            return None
        self.let_go(request_id, None)
        assert (verdict.grant is None) is (scope is Scope.ONCE)
        if verdict.grant is None:
            assert verdict.also == 0
            return None
        return self.a_grant_is_made(verdict, call, scope, for_s)

    def a_grant_is_made(self, verdict: gate.Verdict, call: Any, scope: Scope, for_s: float | None) -> str:
        made = Granted(self.clock, call.tool, call.session_id if scope is Scope.SESSION else None, for_s)
        assert verdict.grant is not None
        made.id = verdict.grant.id
        assert made.id not in {known.id for known in self.granted if known.in_force(self.clock)}
        # Making one clears away those that are over; until then a wall clock that is set back revives one.
        self.granted = [*(known for known in self.granted if known.in_force(self.clock)), made]
        others = [request_id for request_id, (other, _) in self.model.items() if self.covered(other)]
        alive = [request_id for request_id in others if not self.model[request_id][0].has_ended()]
        for request_id in others:
            self.let_go(request_id, None)
        assert verdict.also == len(alive)
        return made.id

    def let_go(self, request_id: str, words: str | None) -> None:
        call, _ = self.model.pop(request_id)
        if not call.has_ended():
            self.expected[call.call_id] = words

    @step(grant_id=among("grants_made"))
    def an_operator_revokes(self, grant_id: str) -> None:
        known = [g for g in self.granted if g.id == grant_id and g.in_force(self.clock)]
        revoked = self.actor.receive(gate.Revoke(grant_id))
        assert (None if revoked is None else revoked.id) == (grant_id if known else None)
        self.granted = [g for g in self.granted if g not in known]

    # --- time and restarts ----------------------------------------------------------------------------------------

    @step(timeout_s=st.sampled_from([5.0, 30.0]))
    def it_is_looked_for_overdue(self, timeout_s: float) -> None:
        late = [request_id for request_id, (_, at) in self.model.items() if self.clock.seconds - at >= timeout_s]
        for request_id in late:
            self.let_go(request_id, f"The operator did not answer within {timeout_s:g} s, so this call was not run.")
        self.actor.receive(gate.Expire(timeout_s))

    @step(weight=2, seconds=st.sampled_from([1.0, 5.0, 9.0, 30.0, 60.0]))
    def time_goes_on(self, seconds: float) -> None:
        self.clock.pass_by(seconds)

    @step(hours=st.sampled_from([-2, 1]))
    def the_wall_clock_jumps(self, hours: int) -> None:
        self.clock.wall += timedelta(hours=hours)

    @step()
    def the_actor_restarts(self) -> None:
        self.actor = Gate(Gate.mailbox_for("Gate"), waiting=self.waiting, grants=self.grants)

    @step(now=seldom(), weight=3)
    def the_daemon_restarts(self, now: bool) -> None:
        """What waited is gone with its connections; of the grants, those for everybody are kept, by the wall clock."""
        if not now:
            return
        self.model.clear()
        self.waiting = Waiting(CAP, self.clock)
        kept = []
        for grant in self.granted:
            # Out of force at one clock is out of force for good, if it was noticed; the file has them all.
            if grant.session is None:
                if grant.ends is not None:
                    grant.deadline = self.clock.seconds + (grant.ends - self.clock.wall).total_seconds()
                kept.append(grant)
        self.granted = kept
        self.lives()

    # --- what must hold -------------------------------------------------------------------------------------------

    @invariant()
    def those_wait_that_the_model_says(self) -> None:
        if hasattr(self, "actor"):
            assert [request.id for request in self.actor.receive(gate.GetWaiting())] == list(self.model)

    @invariant()
    def that_is_granted_that_the_model_says(self) -> None:
        if hasattr(self, "actor"):
            listed = [(one.id, one.tool, one.session_id) for one in self.actor.receive(gate.GetGrants())]
            assert listed == [(g.id, g.tool, g.session) for g in self.granted if g.in_force(self.clock)]
            for tool in TOOLS:
                for session in SESSIONS:
                    wanted = any(g.in_force(self.clock) and g.covers(tool, session) for g in self.granted)
                    assert self.grants.covers(tool, session) is wanted  # type: ignore[arg-type]

    @invariant()
    def each_call_was_answered_once_and_as_the_model_says(self) -> None:
        while hasattr(self, "told") and not self.told.empty():
            message = self.told.get_nowait()
            assert message.call.call_id not in self.answers, "a second answer"
            self.answers[message.call.call_id] = message.refusal
        if hasattr(self, "answers"):
            assert self.answers == self.expected

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


def test_approvals_follow_their_model() -> None:
    """Issue 5, item 4: two operators, one answer; a grant is as wide and as long as it says, over restarts, too."""
    explore(Approvals, sequences=150)
