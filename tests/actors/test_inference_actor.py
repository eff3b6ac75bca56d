"""The inference actor against a model of it: every order of turns, sessions, edits, faults and restarts."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from living import Clock, exchange
from offers import FAKE, NATIVE, File, model

from a2mcp.errors import CannotDeny, InferenceDenied, UnusableFile
from a2mcp.inference.loader import Loader
from a2mcp.inference.models import Models
from a2mcp.inference.overrides import Overrides
from a2mcp.inference.registry import Offer, Registry
from a2mcp.inference.rows import PLACEHOLDER, Catalogue, ModelRow
from a2mcp.inference.switch import Refusals, Switch
from a2mcp.inference.takeover import DENY, NOISE, Takeover
from a2mcp.types import SessionId
from actors import audit, inference
from actors.inference import Begin, Inference, Rebuilt, SwitchForOperator
from actors.ref import Mailbox, Ref

NEAR = "https://192.0.2.1/v1"  # An address: names would be looked up at each arming.
FINE = [
    model("near/a", base_url=NEAR),
    model("near/b", base_url=NEAR),
    model("local/c", base_url="http://127.0.0.1:9/v1"),
]
BEYOND = model("far/x", base_url=NEAR, transport="native")
SIDS = st.sampled_from([None, SessionId("ours")])


class Broken(Exception):
    """What a step may raise."""


class Fault:
    """Breaks one step, once."""

    def __init__(self) -> None:
        self.after: int | None = None

    def __call__(self, _name: str) -> None:
        if self.after is None:
            return
        self.after -= 1
        if self.after < 0:
            self.after = None
            raise Broken("a step broke")


class Desk:
    """The actor without its thread, so that a test decides what happens when."""

    def __init__(self, rows: tuple[ModelRow, ...], *, denied: bool) -> None:
        self.fault = Fault()
        self.file = File(Catalogue(rows, rows[0].ref if rows else None))
        self.registry, self.overrides, self.refusals = Registry(Clock()), Overrides(), Refusals()
        self.loader = Loader(self.registry, self.file)
        self.warned: list[str] = []
        takeover = Takeover(self.registry, self.overrides, self.refusals.add, self.fault)
        self.takeover = takeover
        switch = Switch(lambda: takeover, self.loader, self.refusals, self.warned.append)
        self.models = Models(self.registry, self.loader, self.overrides, switch)
        self.registry.claim("tests", Offer(apis=(FAKE, NATIVE)))
        self.loader.refresh()
        self.log = Mailbox("AuditWriter", 1000)
        self.restart()
        if denied:
            self.tell(Begin())

    def restart(self) -> None:
        """Another actor on the same state, as the supervisor makes one."""
        box = Inference.mailbox_for("Inference")
        self.actor = Inference(box, models=self.models, me=Ref(box), audit_writer=Ref(self.log))

    def tell(self, message: Any) -> Any:
        with contextlib.redirect_stderr(io.StringIO()):
            return self.actor.receive(message)

    def records(self) -> list[tuple[str | None, dict[str, Any]]]:
        """What came to the audit writer since the last look, which then tells us that it is written."""
        found = []
        while not self.log.empty():
            event = self.log.get_nowait()
            assert isinstance(event, audit.Event)
            assert event.tool == "host_llm"
            found.append((event.session_id, dict(event.args)))
            if event.message is not None:
                self.actor.receive(event.message)
        return found


class Machine(RuleBasedStateMachine):
    """Source: issue, "What it must show"; row L03."""

    @initialize(
        rows=st.lists(st.sampled_from(FINE), unique_by=lambda row: row.ref), denied=st.booleans(), beyond=st.booleans()
    )
    def start(self, rows: list[ModelRow], denied: bool, beyond: bool) -> None:
        self.known = (*rows, BEYOND) if beyond else tuple(rows)
        self.desk = Desk(self.known, denied=denied)
        self.on = denied and not beyond
        self.degraded = False
        self.guarded = self.visible() if self.on else frozenset()
        self.denied = 0
        self.chosen_by_file()
        error = {"error": self.refusal()} if denied and beyond else {}
        assert self.desk.records() == ([(None, {"enabled": False, **error})] if error else [])

    def visible(self) -> frozenset[str]:
        """The models that are known, by name; the placeholder once it was put in."""
        return frozenset(row.ref for row in self.desk.registry.rows())

    def chosen_by_file(self) -> None:
        self.chosen = self.known[0].ref if self.known else PLACEHOLDER.ref

    def refusal(self) -> str:
        return str(
            CannotDeny(
                "inference cannot be denied: far would be reached past everything that denies.",
                hint="Change 'transport' or 'api' of the provider in models.yml.",
            )
        )

    def deny(self) -> str | None:
        """What denying does to the model of the switch; why it is refused, if it is."""
        reason = self.refusal() if BEYOND in self.known else None
        if self.desk_fault is not None and self.desk_fault <= (0 if reason else 4):
            reason = "a step broke"
        if reason is None:
            self.on, self.degraded = True, False
            self.guarded = frozenset(row.ref for row in self.known) | self.placeholder()
        else:
            self.degraded = self.on
        return reason

    def placeholder(self) -> frozenset[str]:
        return self.visible() & {PLACEHOLDER.ref}

    def armed_fault(self, step: int | None) -> None:
        self.desk_fault = step
        self.desk.fault.after = step

    def finish(self) -> None:
        self.desk.fault.after = None

    @rule(enabled=st.booleans(), sid=SIDS, fault=st.none() | st.integers(0, 4))
    def caller_turns(self, enabled: bool, sid: SessionId | None, fault: int | None) -> None:
        self.armed_fault(fault)
        asked, reply = exchange(sid)
        self.desk.tell(inference.Switch(asked, sid, enabled))
        reason = self.allow(fault) if enabled else self.deny()
        assert self.desk.records() == [(sid, self.args(enabled, reason))]
        assert reply.response.status == (500 if self.fails(reason) else 200)
        assert reply.json == self.answer(reason)
        self.finish()

    @rule(enabled=st.booleans(), fault=st.none() | st.integers(0, 4))
    def operator_turns(self, enabled: bool, fault: int | None) -> None:
        self.armed_fault(fault)
        try:
            answer, said = self.desk.tell(SwitchForOperator(enabled)), None
        except CannotDeny as error:
            answer, said = None, error.text
        reason = self.allow(fault) if enabled else self.deny()
        assert said == (reason if self.fails(reason) else None)
        assert answer == (None if self.fails(reason) else self.facts())
        assert self.desk.records() == [(None, self.args(enabled, reason))]
        self.finish()

    @rule(turns=st.lists(st.booleans(), min_size=2, max_size=6))
    def callers_turn_at_once(self, turns: list[bool]) -> None:
        """All are in the mailbox before the first is handled; each is answered as if it were alone, in their order."""
        self.armed_fault(None)
        replies, expected, records = [], [], []
        for enabled in turns:
            asked, reply = exchange(None)
            replies.append(reply)
            self.desk.actor.mailbox.put(inference.Switch(asked, None, enabled))
        for enabled in turns:
            self.desk.tell(self.desk.actor.mailbox.get_nowait())
            reason = self.allow(None) if enabled else self.deny()
            expected.append(self.answer(reason))
            records.append((None, self.args(enabled, reason)))
        assert self.desk.records() == records
        assert [reply.json for reply in replies] == expected

    @rule(
        rows=st.none() | st.lists(st.sampled_from([*FINE, BEYOND]), unique_by=lambda row: row.ref),
        fault=st.none() | st.integers(0, 4),
    )
    def session_is_rebuilt(self, rows: list[ModelRow] | None, fault: int | None) -> None:
        """The agent has a new session; the file may have changed, or be wrong, by then."""
        self.edit(rows)
        self.armed_fault(fault)
        self.desk.tell(Rebuilt())
        reason = self.deny() if self.on else None
        assert self.desk.records() == ([(None, self.args(False, reason))] if reason else [])
        self.finish()

    def edit(self, rows: list[ModelRow] | None) -> None:
        if rows is None:
            self.desk.file.contents.append(UnusableFile("models.yml, line 1: is wrong."))
            return
        self.desk.file.contents.append(Catalogue(tuple(rows), rows[0].ref if rows else None))
        self.known = tuple(rows)

    @rule()
    def actor_is_restarted(self) -> None:
        self.desk.restart()

    @rule(denied=st.booleans())
    def daemon_is_restarted(self, denied: bool) -> None:
        """The setting decides; nothing of the switch was kept."""
        self.desk.takeover.restore()
        self.desk = Desk(self.known, denied=denied)
        self.on, self.degraded, self.denied = denied and BEYOND not in self.known, False, 0
        self.guarded = self.visible() if self.on else frozenset()
        self.desk.records()

    @rule()
    def agent_asks_every_model(self) -> None:
        for row in self.desk.registry.rows():
            if row.ref in self.guarded and self.on:
                with pytest.raises(InferenceDenied):
                    self.desk.registry.speak(row)
                self.denied += 1
            elif row.transport is None and row.api == "fake":
                assert self.desk.registry.speak(row) == (row.ref, None)

    def allow(self, fault: int | None) -> str | None:
        if self.on and fault is not None and fault < 4:
            return "a step broke"
        self.on, self.degraded, self.guarded = False, False, frozenset()
        return None

    def fails(self, reason: str | None) -> bool:
        """Whether the turn is answered with the reason: not where what was denied still is, beside what cannot be."""
        return reason is not None and not (self.on and reason == self.refusal())

    def answer(self, reason: str | None) -> Any:
        return {"error": reason} if self.fails(reason) else msgspec.to_builtins(self.facts())

    def args(self, enabled: bool, reason: str | None) -> dict[str, Any]:
        return {"enabled": enabled, "error": reason} if reason else {"enabled": enabled}

    def facts(self) -> Any:
        return type(self.desk.models.switch.facts)(not self.on, self.denied, self.degraded)

    @invariant()
    def the_switch_is_where_the_model_is(self) -> None:
        if not hasattr(self, "desk"):
            return
        assert self.desk.models.switch.facts == self.facts()
        assert self.desk.overrides._now == (NOISE if self.on else {})
        assert (self.desk.takeover.guarded is not None) == self.on
        assert {row.ref for row in self.desk.registry.rows() if row.api == DENY} == self.guarded
        assert self.desk.registry.chosen() is not None

    def teardown(self) -> None:
        if hasattr(self, "desk"):
            self.desk.fault.after = None
            self.desk.takeover.restore()


Machine.TestCase.settings = settings(max_examples=150, stateful_step_count=25, suppress_health_check=list(HealthCheck))
TestTheSwitchFollowsItsModel = Machine.TestCase
