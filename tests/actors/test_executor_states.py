"""The executor against a model of calls: whoever ends a call first, in whatever order, it ends once and with his words.

No thread runs: the actor is handed its messages one by one, through its rim, and the workers are stepped by hand.
"""

from __future__ import annotations

import queue
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant
from living import Clock, call_of
from states import Machine, among, explore, seldom, some_of, step

from a2mcp.inference.registry import Registry as ModelRegistry
from a2mcp.library.desk import Desk
from a2mcp.library.shelf import Library
from a2mcp.policy.approval import ApprovalSettings, Mode, Rule, denied
from a2mcp.policy.grants import Grants
from a2mcp.protocol.interviews import CANNOT_ASK, Interviews
from a2mcp.protocol.statetoken import StateTokens
from a2mcp.tools.asking import InputRequired, elicitation
from a2mcp.tools.context import Context, Limits
from a2mcp.tools.registry import LocalHost, Registry
from a2mcp.tools.result import PENDING, Outcome, text
from a2mcp.tools.spec import Lane, Tier, Tool, ToolSpec
from actors import audit, executor, gate, jobs
from actors.executor import LOST, STOPPED, WITHDRAWN, Execute, Executor, GetRunning, Running, Surroundings
from actors.ref import Mailbox, Ref
from actors.sampling import Sampling
from actors.worker import Run, Worker

TOOLS = (
    "inline",
    "worker",
    "hang",
    "hang-worker",
    "raises",
    "asks",
    "denied",
    "unknown",
    "writes",
    "writes-inline",
    "droppable",
)
WITHOUT_LEAVE = ("inline", "raises", "asks")
ASKED_ABOUT = ("writes", "writes-inline", "droppable")
BY_WORKER = {"worker", "hang-worker", "writes", "droppable"}
NOT_EXPOSED = "Tool '{}' is not exposed. Call tools/list for the names."


class NoParams(msgspec.Struct):
    pass


class Pool:
    """Workers that do nothing until a rule has them."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.dead: list[Run] = []

    def run(self, message: Run) -> None:
        self.runs.append(message)

    def free(self, worker: object) -> None:
        pass

    def tend(self) -> list[Run]:
        lost, self.dead = self.dead, []
        return lost

    def stop(self) -> None:
        pass


class Calls(Machine):
    """The model says of each call where it stands, and with which words it ended: told once, and never after."""

    @initialize()
    def begin(self) -> None:
        self.clock, self.pool, self.ran = Clock(), Pool(), []
        self.audit, self.gate, self.jobs = (Mailbox(name, 10_000) for name in ("AuditWriter", "Gate", "Jobs"))
        self.mailbox = Executor.mailbox_for("Executor")
        self.withdrawn: list[str] = []
        self.host = LocalHost([self.tool(name) for name in TOOLS if name != "unknown"])
        self.running, self.grants = Running(), Grants(Path("/nowhere/grants.json"), self.clock)
        tools = {"denied": Rule.DENY}
        self.around = Surroundings(
            registry=Registry([self.host]),
            approval=ApprovalSettings(mode=Mode.WRITE, tools=tools),
            grants=self.grants,
            context_for=self.context,
            audit_writer=Ref(self.audit),
            gate=Ref(self.gate),
            jobs=Ref(self.jobs),
            interviews=Interviews(StateTokens("secret", self.clock), lambda _: None),
            sampling=Sampling(ModelRegistry(self.clock), lambda *_: None, lambda *_: None),
            withdraw=self.withdrawn.append,
            desk=Desk(Library([])),
        )
        self.calls: list[Any] = []
        self.were_held: list[Any] = []
        self.all: dict[str, Any] = {}
        self.stands: dict[str, str] = {}
        self.expected: dict[str, tuple[str, str | None]] = {}
        self.seen: dict[str, tuple[str, str | None]] = {}
        self.dropped = False
        self.granted: dict[str, float] = {}
        self.may_run: set[str] = set()
        self.late = 0
        self.restart()

    def tool(self, name: str) -> Tool[NoParams]:
        lane = Lane.WORKER if name in BY_WORKER else Lane.INLINE
        tier = Tier.WRITE if name in ASKED_ABOUT else Tier.READ
        spec = ToolSpec(name=name, title=name, description=name, input_schema={"type": "object"}, tier=tier, lane=lane)
        return Tool(spec=spec, params=NoParams, run=lambda _params, context: self.work(name, context))

    def work(self, name: str, context: Context) -> Outcome:
        self.ran.append(context.ticket.call_id)
        self.late += context.cancelled()
        if name == "raises":
            raise SystemExit(3)
        if name == "asks":
            raise InputRequired({"q": elicitation("?", {})})
        return PENDING if name.startswith("hang") else text(name)

    def context(self, call: Any) -> Context:
        return Context(
            cancelled=call.has_ended, ticket=call, cwd=Path(), home=Path(), limits=Limits(), jobs=None, clock=self.clock
        )  # type: ignore[arg-type]

    def tell(self, message: Any) -> None:
        self.actor.handle_one(message)
        while True:
            try:
                following = self.mailbox.get_nowait()
            except queue.Empty:
                return
            self.actor.handle_one(following)

    def ends(self, call: Any, words: str, ended: str | None = None) -> None:
        """Note in the model that a call ends with these words, unless it has."""
        if self.stands[call.call_id] != "ended":
            self.stands[call.call_id] = "ended"
            self.expected[call.call_id] = (words, ended)

    # --- what can happen ------------------------------------------------------------------------------------------

    @step(into="calls", weight=4, name=st.sampled_from(TOOLS + ASKED_ABOUT))
    def comes(self, name: str) -> Any:
        call, _ = call_of(name)
        self.all[call.call_id] = call
        self.stands[call.call_id] = "new"
        if name in ("inline", "raises", "asks"):
            words = {"raises": "The tool failed: SystemExit: 3", "asks": CANNOT_ASK}
            self.ends(call, words.get(name, name))
        elif name == "denied":
            self.ends(call, str(denied(name)))
        elif name == "unknown" or self.host_lacks(name):
            self.ends(call, NOT_EXPOSED.format(name))
        elif name in ASKED_ABOUT and self.clock.seconds >= self.granted.get(name, 0):
            self.stands[call.call_id] = "waits"
            self.were_held.append(call)
        else:
            self.goes_on_with(call)
        self.tell(Execute(call, Ref(self.audit)))
        return call

    def goes_on_with(self, call: Any) -> None:
        """Note that a call may run now."""
        self.may_run.add(call.call_id)
        if call.tool == "writes-inline":
            self.ends(call, call.tool)
        else:
            self.stands[call.call_id] = "job" if call.tool == "hang" else "queued"

    def host_lacks(self, name: str) -> bool:
        return name == "droppable" and self.dropped

    @step(into="calls")
    def is_lost_on_the_way(self) -> Any:
        """A call whose message never came."""
        call, _ = call_of("worker")
        self.all[call.call_id] = call
        self.stands[call.call_id] = "lost"
        return call

    @step(weight=2, which=st.integers(0, 99))
    def a_worker_works(self, which: int) -> None:
        if self.pool.runs:
            run = self.pool.runs.pop(which % len(self.pool.runs))
            name, before = run.call.tool, self.stands[run.call.call_id]
            if before == "queued" and name == "hang-worker":
                self.stands[run.call.call_id] = "job"
            else:
                # One that was dropped meanwhile is not run.
                self.ends(run.call, NOT_EXPOSED.format(name) if self.host_lacks(name) else name)
            worked = len(self.ran)
            Worker(Worker.mailbox_for("Worker"), run_calls=Ref(self.mailbox)).handle_one(run)
            assert len(self.ran) - worked == (before == "queued" and not self.host_lacks(name)), (
                "what was answered must not happen afterwards"
            )
            self.tell(GetRunning())

    @step(which=st.integers(0, 99))
    def a_worker_dies(self, which: int) -> None:
        if self.pool.runs:
            self.pool.dead.append(self.pool.runs.pop(which % len(self.pool.runs)))

    @step(call=among("calls"))
    def a_job_ends(self, call: Any) -> None:
        if self.stands[call.call_id] == "job":
            self.ends(call, "the job")
            audit.finish(Ref(self.audit), call, text("the job"))

    @step(weight=3, call=among("were_held"), allowed=st.sampled_from([True, True, False]))
    def the_gate_answers(self, call: Any, allowed: bool) -> None:
        """The gate answers what it holds, and what it held when the call had been ended by another."""
        if self.stands[call.call_id] == "waits":
            if allowed and self.host_lacks(call.tool):
                self.ends(call, NOT_EXPOSED.format(call.tool))
            elif allowed:
                self.goes_on_with(call)
            else:
                self.ends(call, "no")
        elif self.stands[call.call_id] != "ended":
            return
        self.tell(gate.Answered(call, None if allowed else "no"))

    @step(call=among("calls"), reason=st.sampled_from([WITHDRAWN, STOPPED]))
    def is_cancelled(self, call: Any, reason: str) -> None:
        self.ends(call, reason, "cancelled")
        self.tell(executor.Cancel(call, reason))
        assert [m.call_id for m in drained(self.gate) if isinstance(m, gate.Forget)] == [call.call_id]
        assert self.withdrawn.pop() == call.call_id
        assert [m.call_id for m in drained(self.jobs) if isinstance(m, jobs.Cancel)] == [call.call_id]

    @step(some=some_of("calls"))
    def is_swept(self, some: list[Any]) -> None:
        for run in self.pool.dead:
            self.ends(run.call, LOST)
        for call in some:
            if self.stands[call.call_id] == "lost":
                self.ends(call, LOST)
        self.tell(executor.Sweep(tuple(some)))

    @step(now=seldom())
    def everything_is_aborted(self, now: bool) -> None:
        if not now:
            return
        for call in self.all.values():
            if self.stands[call.call_id] != "lost":
                self.ends(call, "down", "aborted")
        self.tell(executor.Abort("down"))

    @step(name=st.sampled_from(ASKED_ABOUT), seconds=st.sampled_from([1.0, 10.0, 60.0]))
    def the_operator_grants(self, name: str, seconds: float) -> None:
        self.grants.add(name, session_id="s", for_s=seconds)  # type: ignore[arg-type]
        self.granted[name] = max(self.granted.get(name, 0), self.clock.seconds + seconds)

    @step(seconds=st.sampled_from([1.0, 10.0, 100.0]))
    def time_goes_on(self, seconds: float) -> None:
        self.clock.seconds += seconds

    @step(there=st.booleans())
    def a_tool_comes_or_goes(self, there: bool) -> None:
        if self.dropped and there:
            self.host.register(self.tool("droppable"))
        elif not self.dropped and not there:
            self.host.drop("droppable")
        self.dropped = not there

    @step()
    def restart(self) -> None:
        """Its replacement goes on with the same calls."""
        self.actor = Executor(self.mailbox, running=self.running, pool=self.pool, around=self.around)  # type: ignore[arg-type]

    # --- what must hold -------------------------------------------------------------------------------------------

    @invariant()
    def each_call_has_ended_once_and_as_the_model_says(self) -> None:
        for message in drained(self.audit) if hasattr(self, "audit") else ():
            assert isinstance(message, audit.Done)
            assert message.call.call_id not in self.seen, "a second end"
            said = msgspec.json.decode(message.response.body)["result"]["content"][0]["text"]
            self.seen[message.call.call_id] = (said, message.ended)
        if hasattr(self, "seen"):
            assert self.seen == self.expected

    @invariant()
    def as_many_run_as_the_model_says(self) -> None:
        if hasattr(self, "actor"):
            assert self.actor.receive(GetRunning()) == sum(
                stands in ("queued", "waits", "job") for stands in self.stands.values()
            )

    @invariant()
    def nothing_runs_twice_or_without_leave(self) -> None:
        if hasattr(self, "ran"):
            assert len(set(self.ran)) == len(self.ran)
            assert self.late == 0, "what was answered must not happen afterwards"
            begun = {*self.ran, *(run.call.call_id for run in self.pool.runs)}
            assert not [call_id for call_id in begun - self.may_run if self.all[call_id].tool not in WITHOUT_LEAVE]

    def teardown(self) -> None:
        if not hasattr(self, "actor"):
            return
        self.everything_is_aborted(now=True)
        self.is_swept([call for call in self.all.values() if self.stands[call.call_id] == "lost"])
        self.each_call_has_ended_once_and_as_the_model_says()
        assert self.seen.keys() == self.all.keys(), "a call without an end"
        self.is_swept([])
        assert not self.running.calls


def drained(mailbox: Mailbox) -> list[Any]:
    found = []
    while not mailbox.empty():
        found.append(mailbox.get_nowait())
    return found


def test_calls_follow_their_model(caplog: pytest.LogCaptureFixture) -> None:
    """Issue 5, item 4: cancellation, the gate, workers that die, lost messages, restarts and the end of the daemon."""
    caplog.set_level("CRITICAL")
    explore(Calls)
