"""The gate: calls that wait for the operator, and what becomes of them when it dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from living import WAIT_S, Clock, Ear, Poison, call_of

from a2mcp.errors import InvalidParams
from a2mcp.policy.grants import Grants, Scope, Word
from a2mcp.policy.waiting import Waiting
from actors import gate
from actors.gate import Answered, Gate, Held
from actors.kit import launch
from actors.ref import Ref

YES = Word(approve=True)


class Door:
    """A gate and the executor it tells."""

    def __init__(self, home: Path, cap: int = 100) -> None:
        self.clock = Clock()
        self.waiting: Waiting[Held] = Waiting(cap, self.clock)
        self.grants = Grants(home / "grants.json", self.clock)
        self.told: list[dict[str, Any]] = []
        self.mailbox = Gate.mailbox_for("Gate")
        self.ref: Ref[gate.Command] = Ref(self.mailbox)
        self.executor = Ear("Executor")
        self.launch()

    def launch(self) -> None:
        self.actor = Gate(self.mailbox, waiting=self.waiting, grants=self.grants, news=self.news)
        launch(self.actor)

    def news(self, kind: str, **facts: Any) -> None:
        self.told.append({"kind": kind, **facts})

    def hold(self, tool: str = "bash", arguments: bytes = b'{"command":"ls"}') -> gate.Call:
        call, _ = call_of(tool, arguments)
        gate.wait(self.ref, call, run_calls=self.executor.ref)
        return call


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")


def test_a_call_waits_until_the_operator_allows_it(door: Door) -> None:
    """Issue, "Approval": the operator sees it and answers."""
    call = door.hold()
    (seen,) = gate.waiting(door.ref)
    assert (seen.tool, seen.args, seen.call_id) == ("bash", '{"command":"ls"}', call.call_id)
    assert door.executor.heard() == []

    assert gate.answer(door.ref, seen.id, YES).counted

    assert door.executor.wait_for(Answered) == [Answered(call, None)]
    assert gate.waiting(door.ref) == ()


def test_a_denied_call_is_told_why(door: Door) -> None:
    """Issue, "Approval": deny is a result that the caller can read."""
    door.hold()
    door.hold()
    first, second = gate.waiting(door.ref)

    assert gate.answer(door.ref, second.id, Word(approve=False, reason="not today")).counted
    assert gate.answer(door.ref, first.id, Word(approve=False)).counted

    said = [answer.refusal for answer in door.executor.wait_for(Answered, 2)]
    assert said == ["The operator denied this call: not today", "The operator denied this call."]


def test_an_answer_counts_once_and_only_for_a_call_that_waits(door: Door) -> None:
    """Ours: two operators, or a list from before."""
    call = door.hold()
    (seen,) = gate.waiting(door.ref)
    assert not gate.answer(door.ref, "nosuch", YES).counted
    assert gate.answer(door.ref, seen.id, YES).counted
    assert not gate.answer(door.ref, seen.id, Word(approve=False)).counted

    ended = door.hold()
    ended.claim()
    (seen,) = gate.waiting(door.ref)
    assert not gate.answer(door.ref, seen.id, YES).counted
    assert [answer.call for answer in door.executor.wait_for(Answered)] == [call]


def test_a_word_about_a_call_that_has_ended_grants_nothing(door: Door) -> None:
    """Ours: the operator is told that nothing waits, so nothing may be allowed behind that."""
    door.hold().claim()
    (seen,) = gate.waiting(door.ref)

    verdict = gate.answer(door.ref, seen.id, Word(approve=True, scope=Scope.ALWAYS))

    assert (verdict.counted, verdict.grant, verdict.earlier) == (False, None, "withdrawn")
    assert gate.grants(door.ref) == ()


def test_a_full_gate_refuses_the_call(tmp_path: Path) -> None:
    """STYLE 12: every buffer has a chosen size."""
    door = Door(tmp_path, cap=1)
    door.hold()
    refused = door.hold()

    (answer,) = door.executor.wait_for(Answered)
    assert answer.call is refused
    assert "already wait for approval" in answer.refusal


def test_a_new_gate_still_holds_what_the_dead_one_held(door: Door) -> None:
    """Issue, "Actors": a killed actor is replaced."""
    call = door.hold()
    gate.waiting(door.ref)
    door.mailbox.put(Poison())
    door.actor.thread.join(WAIT_S)
    door.launch()
    (seen,) = gate.waiting(door.ref)

    assert gate.answer(door.ref, seen.id, YES).counted
    assert door.executor.wait_for(Answered) == [Answered(call, None)]


def test_a_call_that_breaks_the_gate_is_refused_not_lost(door: Door) -> None:
    """Issue, "Actors": the exchange that a killed actor held is answered with an error."""
    door.waiting.add = _break  # type: ignore[method-assign, assignment]
    call = door.hold()

    assert door.executor.wait_for(Answered) == [Answered(call, "internal error")]


def _break(*_args: object, **_options: object) -> None:
    raise SystemExit


# --- beyond one call ----------------------------------------------------------------------------------------------


def test_a_session_is_allowed_a_tool_and_what_waits_there_goes_on(door: Door) -> None:
    """Issue 6, item 4: scope of an approval."""
    first, second = door.hold(), door.hold()
    other = door.hold("write")
    (seen, *_) = gate.waiting(door.ref)

    verdict = gate.answer(door.ref, seen.id, Word(approve=True, scope=Scope.SESSION))

    assert verdict.counted
    assert verdict.also == 1
    assert verdict.grant is not None
    assert verdict.grant.session_id == "s"
    assert [answer.call for answer in door.executor.wait_for(Answered, 2)] == [first, second]
    assert [one.call_id for one in gate.waiting(door.ref)] == [other.call_id]
    third = door.hold()
    assert door.executor.wait_for(Answered, 3)[-1] == Answered(third, None), "granted while it was on its way"


def test_a_call_without_a_session_is_not_granted_one(door: Door) -> None:
    """Ours: the bridge has sessions, `/mcp` has none."""
    call, _ = call_of("bash", session=None)
    gate.wait(door.ref, call, run_calls=door.executor.ref)
    (seen,) = gate.waiting(door.ref)
    with pytest.raises(InvalidParams, match="no session"):
        gate.answer(door.ref, seen.id, Word(approve=True, scope=Scope.SESSION))

    assert gate.waiting(door.ref) == (seen,), "it waits on"
    assert gate.answer(door.ref, seen.id, YES).counted


def test_what_is_revoked_is_asked_about_again(door: Door) -> None:
    """Issue 6, item 4: a list to revoke."""
    door.hold()
    (seen,) = gate.waiting(door.ref)
    grant = gate.answer(door.ref, seen.id, Word(approve=True, scope=Scope.ALWAYS, for_s=60)).grant
    assert grant is not None
    assert gate.grants(door.ref) == (grant,)
    assert gate.revoke(door.ref, grant.id) == grant
    assert gate.revoke(door.ref, grant.id) is None
    door.hold()

    assert len(gate.waiting(door.ref)) == 1


def test_the_second_of_two_operators_is_told_what_was_said(door: Door) -> None:
    """Issue 6, bad input: two operators answering the same approval."""
    door.hold()
    (seen,) = gate.waiting(door.ref)
    gate.answer(door.ref, seen.id, Word(approve=False))

    verdict = gate.answer(door.ref, seen.id, YES)
    assert (verdict.counted, verdict.earlier) == (False, "denied")


def test_a_call_that_nobody_answers_is_refused_in_time(door: Door) -> None:
    """Issue 6, item 4: a timeout setting."""
    old = door.hold()
    gate.waiting(door.ref)
    door.clock.seconds += 30
    door.hold()
    gate.waiting(door.ref)
    door.clock.seconds += 30
    gate.expire(door.ref, 60)

    (answer,) = door.executor.wait_for(Answered)
    assert answer.call is old
    assert "did not answer within 60 s" in answer.refusal
    assert len(gate.waiting(door.ref)) == 1


def test_those_who_watch_see_a_call_wait_and_how_that_ended(door: Door) -> None:
    """Issue 6, item 3: approvals waiting and answered."""
    call = door.hold(arguments=b'{"command":"%s"}' % (b"x" * 500))
    door.hold("write")
    first, second = gate.waiting(door.ref)
    gate.answer(door.ref, first.id, Word(approve=False, reason="no"))
    gate.forget(door.ref, second.call_id)
    gate.waiting(door.ref)

    said = [(one["kind"], one["status"]) for one in door.told]
    assert said == [
        ("approval.waiting", "waiting"), ("approval.waiting", "waiting"),
        ("approval.answered", "denied"), ("approval.answered", "withdrawn"),
    ]  # fmt: skip
    assert (door.told[0]["call"], door.told[0]["session"]) == (call.call_id, "s")
    assert b"xxxxx" not in bytes(door.told[0]["args"]), "folded, as in the log"
