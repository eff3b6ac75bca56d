"""The executor and its pool: every call that comes in comes to its end, whoever dies on the way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from living import WAIT_S, Clock, Ear, Poison, call_of

from a2mcp.inference.registry import Registry as ModelRegistry
from a2mcp.library.desk import Desk
from a2mcp.library.shelf import Library
from a2mcp.policy.approval import ApprovalSettings, Mode, Rule
from a2mcp.policy.grants import Grants
from a2mcp.tools.context import Context, Limits
from a2mcp.tools.registry import LocalHost, Registry
from a2mcp.tools.result import PENDING, Outcome, text
from a2mcp.tools.spec import Lane, Tier, Tool, ToolSpec
from a2mcp.types import SessionId
from actors import audit, executor, gate, jobs
from actors.executor import LOST, Execute, Executor, Running, Surroundings
from actors.kit import launch
from actors.pool import IDLE_S, Pool
from actors.ref import Ping, Ref
from actors.sampling import Sampling

if TYPE_CHECKING:
    from collections.abc import Callable

from a2mcp.protocol.interviews import Interviews
from a2mcp.protocol.statetoken import StateTokens
from a2mcp.tools.call import Call


class NoParams(msgspec.Struct):
    pass


def tool(name: str, run: Callable[[], Outcome], *, lane: Lane = Lane.WORKER, tier: Tier = Tier.READ) -> Tool[NoParams]:
    spec = ToolSpec(name=name, title=name, description=name, input_schema={"type": "object"}, tier=tier, lane=lane)
    return Tool(spec=spec, params=NoParams, run=lambda _params, _context: run())


def throw(cause: BaseException) -> Callable[[], Outcome]:
    def run() -> Outcome:
        raise cause

    return run


class Blocker:
    """A tool that holds its worker until let go, and counts who is inside."""

    def __init__(self) -> None:
        self._go = threading.Event()
        self._entered = threading.Semaphore(0)
        self.runs = 0

    def run(self) -> Outcome:
        self.runs += 1
        self._entered.release()
        assert self._go.wait(WAIT_S)
        return text("unblocked")

    def await_entered(self, count: int = 1) -> None:
        for _ in range(count):
            assert self._entered.acquire(timeout=WAIT_S)

    def nobody_entered(self) -> bool:
        return not self._entered.acquire(blocking=False)

    def let_go(self) -> None:
        self._go.set()


class Bench:
    """An executor with recorders in the places of the audit writer and the gate."""

    def __init__(self, *, most: int = 3, approval: ApprovalSettings | None = None) -> None:
        self.blocker = Blocker()
        self.host = LocalHost(
            [
                tool("inline", lambda: text("inline"), lane=Lane.INLINE),
                tool("worker", lambda: text("worker")),
                tool("block", self.blocker.run),
                tool("hang", lambda: PENDING, lane=Lane.INLINE),
                tool("writes", lambda: text("written"), tier=Tier.WRITE),
                tool("exit", throw(SystemExit(3))),
                tool("inline-exit", throw(SystemExit(3)), lane=Lane.INLINE),
            ]
        )
        self.clock = Clock()
        self.audit = Ear("AuditWriter")
        self.gate = Ear("Gate")
        self.jobs = Ear("Jobs")
        self.mailbox = Executor.mailbox_for("Executor")
        self.ref: Ref[executor.Command] = Ref(self.mailbox)
        self.pool = Pool(clock=self.clock, run_calls=self.ref, most=most)
        self.running = Running()
        self.grants = Grants(Path("/nowhere/grants.json"), self.clock)
        self._around = Surroundings(
            registry=Registry([self.host]),
            approval=approval or ApprovalSettings(),
            grants=self.grants,
            context_for=self._context,
            audit_writer=self.audit.ref,
            gate=self.gate.ref,
            jobs=self.jobs.ref,
            interviews=Interviews(StateTokens("secret", self.clock), lambda _: None),
            desk=Desk(Library([])),
            sampling=Sampling(ModelRegistry(self.clock), lambda *_: None, lambda *_: None),
            withdraw=lambda _: None,
        )
        self.launch()

    def launch(self) -> None:
        self.actor = Executor(self.mailbox, running=self.running, pool=self.pool, around=self._around)
        launch(self.actor)

    def _context(self, call: Call) -> Context:
        limits = Limits()
        jobs: Any = None
        return Context(ticket=call, cwd=Path(), home=Path(), limits=limits, jobs=jobs, clock=self.clock)

    def run(self, name: str) -> Call:
        call, _ = call_of(name)
        self.ref.tell(Execute(call, self.audit.ref))
        return call

    def settle(self) -> None:
        self.ref.ask(Ping(), timeout=WAIT_S)

    def ends(self, count: int) -> list[tuple[str, bool, str]]:
        """Of each ``done`` so far: the tool, whether it is an error, and the text."""
        dones = self.audit.wait_for(audit.Done, count)
        bodies = [msgspec.json.decode(done.response.body)["result"] for done in dones]
        return [
            (done.call.tool, body["isError"], body["content"][0]["text"])
            for done, body in zip(dones, bodies, strict=True)
        ]

    def end(self) -> tuple[str, bool, str]:
        (only,) = self.ends(1)
        return only

    def idle(self) -> None:
        """Wait until nothing runs."""
        for _ in range(10_000):
            if executor.running(self.ref) == 0:
                return
            threading.Event().wait(0.001)
        raise AssertionError(self.running.calls)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")


def test_a_call_runs_inline_or_in_a_worker_and_is_forgotten_when_it_ends(bench: Bench) -> None:
    """DESIGN 3: Executor, Worker, AuditWriter."""
    bench.run("inline")
    bench.ends(1)
    bench.run("worker")

    assert bench.ends(2) == [("inline", False, "inline"), ("worker", False, "worker")]
    bench.idle()


@pytest.mark.parametrize("name", ["exit", "inline-exit"])
def test_a_tool_that_exits_costs_its_own_call(bench: Bench, name: str) -> None:
    """B14: isError, and the actors live."""
    bench.run(name)

    assert bench.end()[:2] == (name, True)
    bench.idle()
    bench.run("worker")
    assert bench.ends(2)[1] == ("worker", False, "worker")
    assert bench.actor.alive()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError, RecursionError, GeneratorExit])
def test_whatever_a_tool_raises_is_an_error_of_its_call(bench: Bench, kind: type[BaseException]) -> None:
    """B14: the other kinds."""
    bench.host.register(tool("odd", throw(kind())))
    bench.run("odd")

    assert bench.end() == ("odd", True, f"The tool failed: {kind.__name__}: ")


def test_a_result_that_cannot_be_encoded_ends_its_call_with_an_error(bench: Bench) -> None:
    """Ours: an object of a careless tool is a fault of ours, not a call that hangs."""
    bad = text("bad", structured={"x": object()})
    bench.host.register(tool("bad-inline", lambda: bad, lane=Lane.INLINE))
    bench.host.register(tool("bad-worker", lambda: bad))
    bench.run("bad-inline")
    bench.run("bad-worker")

    assert sorted(bench.ends(2)) == [("bad-inline", True, "internal error"), ("bad-worker", True, "internal error")]
    bench.idle()


def test_a_name_that_is_not_offered_has_one_answer(bench: Bench) -> None:
    """Seed, "tools/call": names not in the list, aliases and addresses."""
    for name in ("nosuch", "Inline", "xd://inline"):
        bench.run(name)

    assert [text for _, _, text in bench.ends(3)] == [
        f"Tool '{name}' is not exposed. Call tools/list for the names." for name in ("nosuch", "Inline", "xd://inline")
    ]
    bench.idle()


def test_blocking_calls_wait_for_a_worker_once_all_are_busy(bench: Bench) -> None:
    """Ours: the pool grows to its most and then queues; nothing is refused and nothing is lost."""
    for _ in range(7):
        bench.run("block")
    bench.blocker.await_entered(3)
    bench.settle()

    assert bench.blocker.nobody_entered()
    assert executor.running(bench.ref) == 7
    bench.run("inline")
    assert bench.end() == ("inline", False, "inline")
    bench.blocker.let_go()
    assert bench.ends(8)[1:] == [("block", False, "unblocked")] * 7
    bench.idle()


def test_workers_that_idle_long_go_and_one_stays(bench: Bench) -> None:
    """Ours: shrinks when idle."""
    for _ in range(3):
        bench.run("block")
    bench.blocker.await_entered(3)
    bench.blocker.let_go()
    bench.ends(3)
    bench.idle()
    workers = list(bench.pool._idle)
    assert len(workers) == 3

    executor.sweep(bench.ref, ())
    bench.settle()
    assert len(bench.pool._idle) == 3
    bench.clock.seconds += IDLE_S + 1
    executor.sweep(bench.ref, ())
    bench.settle()

    for worker in workers[:2]:
        worker.thread.join(WAIT_S)
    assert [worker.alive() for worker in workers] == [False, False, True]


def test_the_worker_that_was_busy_last_is_taken_first(bench: Bench) -> None:
    """Ours: keeps the busy threads warm and lets the others grow old."""
    for _ in range(2):
        bench.run("block")
    bench.blocker.await_entered(2)
    bench.blocker.let_go()
    bench.ends(2)
    bench.idle()
    last = bench.pool._idle[-1]
    bench.run("worker")
    bench.ends(3)
    bench.idle()

    assert bench.pool._idle[-1] is last


def test_a_call_that_a_dead_worker_never_began_is_run_by_another(bench: Bench) -> None:
    """Issue, "Actors": a killed actor is replaced, and what was let in is not lost."""
    for _ in range(3):
        bench.run("block")
    bench.blocker.await_entered(3)
    workers = list(bench.pool._busy)
    for worker in workers:
        # Behind the call that runs, and before the one that waits.
        worker.mailbox.put(Poison())
    bench.run("worker")
    bench.settle()
    bench.blocker.let_go()
    for worker in workers:
        worker.thread.join(WAIT_S)
    bench.ends(3)
    executor.sweep(bench.ref, ())

    assert bench.ends(4)[3] == ("worker", False, "worker")
    bench.idle()


def test_a_worker_that_vanished_with_its_call_is_found_by_the_sweep(bench: Bench) -> None:
    """Issue, "Actors": a sweep for lost exchanges."""
    call = bench.run("block")
    bench.blocker.await_entered()
    (worker,) = bench.pool._busy
    worker.actor_stopped.set()  # What a thread that ended leaves behind.
    executor.sweep(bench.ref, ())

    assert bench.end() == ("block", True, LOST)
    assert call.has_ended()
    bench.blocker.let_go()
    bench.idle()


def test_an_abort_ends_everything_that_runs_or_waits(bench: Bench) -> None:
    """Issue, "HTTP edge": what is still running at the bound is ended and recorded."""
    for _ in range(5):
        bench.run("block")
    bench.run("hang")
    bench.blocker.await_entered(3)
    bench.settle()

    executor.abort(bench.ref, "going down")

    assert {(is_error, said) for _, is_error, said in bench.ends(6)} == {(True, "going down")}
    bench.blocker.let_go()
    bench.idle()
    assert bench.blocker.runs == 3, "a call that was answered must not begin afterwards"
    assert len(bench.audit.heard()) == 6


def test_the_sweep_ends_only_calls_that_nobody_runs(bench: Bench) -> None:
    """Issue, "Actors": a sweep for lost exchanges."""
    running = bench.run("hang")
    lost, _ = call_of("inline")
    bench.settle()

    executor.sweep(bench.ref, (running, lost))

    assert bench.end() == ("inline", True, LOST)
    assert not running.has_ended()
    assert bench.ref.ask(executor.GetRunning(), timeout=WAIT_S) == 1
    assert running.claim()  # As the actor does that completes a pending call.
    assert bench.ref.ask(executor.GetRunning(), timeout=WAIT_S) == 0
    executor.sweep(bench.ref, ())
    bench.idle()


def test_rules_and_modes_decide_who_waits_for_the_operator() -> None:
    """Issue, "Approval": a tool's own rule wins."""
    rules = {"worker": Rule.DENY, "inline": Rule.PROMPT}
    bench = Bench(approval=ApprovalSettings(mode=Mode.WRITE, tools=rules))
    denied, asked, writes, reads = (bench.run(name) for name in ("worker", "inline", "writes", "block"))
    bench.blocker.await_entered()

    assert [wait.call for wait in bench.gate.wait_for(gate.Wait, 2)] == [asked, writes]
    name, is_error, said = bench.end()
    assert (name, is_error) == (denied.tool, True)
    assert "deny" in said
    assert reads.call_id in bench.running.calls
    bench.blocker.let_go()
    bench.ends(2)


def test_what_is_granted_is_not_asked_about() -> None:
    """Issue 6, item 4: for this session, always for this tool."""
    bench = Bench(approval=ApprovalSettings(mode=Mode.ALWAYS_ASK, tools={"worker": Rule.DENY}))
    for tool in ("inline", "worker"):
        bench.grants.add(tool, session_id=SessionId("s"))
    granted, denied, asked = (bench.run(name) for name in ("inline", "worker", "writes"))

    assert [wait.call for wait in bench.gate.wait_for(gate.Wait)] == [asked]
    ended = {(tool, is_error) for tool, is_error, _ in bench.ends(2)}
    assert ended == {(granted.tool, False), (denied.tool, True)}


def test_the_operator_ends_a_call_in_his_own_name(bench: Bench) -> None:
    """Issue 6, item 2: cancel."""
    call = bench.run("block")
    bench.blocker.await_entered()
    executor.cancel(bench.ref, call, executor.STOPPED)

    assert bench.end() == ("block", True, executor.STOPPED)
    bench.blocker.let_go()


def test_an_answer_of_the_operator_runs_or_ends_the_call() -> None:
    """Issue, "Approval": deny is isError; a tool dropped meanwhile is not exposed."""
    bench = Bench(approval=ApprovalSettings(mode=Mode.ALWAYS_ASK))
    allowed, refused, dropped, over = (bench.run(name) for name in ("inline", "worker", "writes", "block"))
    bench.gate.wait_for(gate.Wait, 4)
    bench.host.drop("writes")
    over.claim()
    bench.ref.insist(gate.Answered(over, None))
    bench.ref.insist(gate.Answered(allowed, None))
    bench.ref.insist(gate.Answered(refused, "no"))
    bench.ref.insist(gate.Answered(dropped, None))

    assert bench.ends(3) == [
        ("inline", False, "inline"),
        ("worker", True, "no"),
        ("writes", True, "Tool 'writes' is not exposed. Call tools/list for the names."),
    ]
    bench.idle()
    assert bench.blocker.runs == 0


def test_a_new_executor_knows_the_calls_and_workers_of_the_dead_one(bench: Bench) -> None:
    """Issue, "Actors": a killed actor is replaced; what ran goes on."""
    bench.run("block")
    bench.blocker.await_entered()
    bench.mailbox.put(Poison())
    bench.actor.thread.join(WAIT_S)
    assert not bench.actor.alive()
    bench.launch()

    assert executor.running(bench.ref) == 1
    bench.blocker.let_go()
    assert bench.end() == ("block", False, "unblocked")
    bench.idle()


@pytest.mark.parametrize("kind", [SystemExit, ValueError])
def test_a_call_that_breaks_the_executor_is_ended_not_lost(bench: Bench, kind: type[BaseException]) -> None:
    """Issue, "Actors": the exchange that a killed actor held is answered with an error."""
    bench._around = msgspec.structs.replace(bench._around, context_for=lambda _call: throw(kind())())
    bench.actor.stop()
    bench.actor.thread.join(WAIT_S)
    bench.launch()
    bench.run("inline")

    assert bench.end() == ("inline", True, "internal error")
    assert bench.running.calls == {}
    if kind is SystemExit:
        bench.actor.thread.join(WAIT_S)
        assert not bench.actor.alive()


def test_stopping_waits_for_no_busy_worker(bench: Bench) -> None:
    """Ours: a tool that never returns must not hold up the end."""
    bench.run("block")
    bench.blocker.await_entered()
    bench.actor.stop()
    bench.actor.thread.join(WAIT_S)

    assert not bench.actor.thread.is_alive()
    bench.blocker.let_go()
    bench.ends(1)


def test_a_cancelled_call_is_ended_wherever_it_is() -> None:
    """Ours: running, queued for a worker, waiting for the operator, or not even here yet; never run afterwards."""
    bench = Bench(most=1, approval=ApprovalSettings(tools={"writes": Rule.PROMPT}))
    running = bench.run("block")
    bench.blocker.await_entered()
    queued, waiting = bench.run("block"), bench.run("writes")
    early, _ = call_of("inline")
    for call in (running, queued, waiting, early):
        executor.cancel(bench.ref, call)
    bench.ref.tell(Execute(early, bench.audit.ref))
    bench.ref.insist(gate.Answered(waiting, None))

    assert {(is_error, said) for _, is_error, said in bench.ends(4)} == {(True, executor.WITHDRAWN)}
    assert waiting.call_id in {forget.call_id for forget in bench.gate.wait_for(gate.Forget, 4)}
    assert running.call_id in {cancel.call_id for cancel in bench.jobs.wait_for(jobs.Cancel, 4)}
    bench.blocker.let_go()
    bench.idle()
    assert bench.blocker.runs == 1
    assert len(bench.audit.wait_for(audit.Done, 4)) == 4


def test_cancelling_what_has_ended_changes_nothing(bench: Bench) -> None:
    """Ours: the caller's word and the result may cross."""
    call = bench.run("inline")
    bench.ends(1)
    executor.cancel(bench.ref, call)
    bench.settle()

    assert bench.end() == ("inline", False, "inline")
