"""The executor: knows every running call, decides whether and where it runs, and waits for none of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, assert_never

from a2mcp.audit.record import ABORTED, CANCELLED
from a2mcp.errors import A2mcpError, Internal, NotExposed
from a2mcp.policy import consent
from a2mcp.policy.approval import Rule, decide, denied
from a2mcp.protocol.jsonrpc import Answer
from a2mcp.protocol.response import Response
from a2mcp.tools import call as calls
from a2mcp.tools.call import Call
from a2mcp.tools.registry import Entry
from a2mcp.tools.result import PENDING, Encoded, Needs, Refusal, Result, text
from a2mcp.tools.spec import Lane
from actors import audit, gate
from actors.kit import Actor
from actors.pool import Pool
from actors.ref import Ask, Mailbox, Message, Ref
from actors.surroundings import Running, Surroundings
from actors.worker import Returned, Run

if TYPE_CHECKING:
    from collections.abc import Callable

WITHDRAWN = "The caller cancelled this call."
STOPPED = "The operator stopped this call."
GO_ON = "The operator allowed this call; it runs now."
LOST = "The daemon lost this call. Whether the tool ran is not known."


class Execute(Message, frozen=True):
    """Run a call whose start is recorded."""

    call: Call
    audit_writer: Ref[audit.Command]

    def failed(self, error: A2mcpError) -> None:
        """End the call, which has a start, with the error."""
        audit.finish(self.audit_writer, self.call, text(str(error), is_error=True))


class Sweep(Message, frozen=True):
    """End those of these old calls that nobody runs any more."""

    old: tuple[Call, ...]


class Abort(Message, frozen=True):
    """End every running call with this text: the daemon goes down."""

    reason: str


class GetRunning(Ask[int], frozen=True):
    """Ask how many calls are running or waiting."""


class Cancel(Message, frozen=True):
    """End a call that its caller or the operator does not want any more, and what runs for it."""

    call: Call
    reason: str = WITHDRAWN


class Replied(Message, frozen=True):
    """A client has answered a question of a tool."""

    answer: Answer


class Sampled(Message, frozen=True):
    """A model of the host has answered a question of a tool, or could not."""

    call: Call
    needs: Needs
    key: str
    response: Response


Command = Execute | Sampled | Sweep | Abort | Cancel | Replied | GetRunning | Returned | gate.Answered


class Executor(Actor[Command]):
    """Owns the running calls and the pool of workers."""

    MAILBOX: ClassVar[int] = 131_072
    BATCH: ClassVar[int] = 64

    def __init__(self, mailbox: Mailbox, *, running: Running, pool: Pool, around: Surroundings) -> None:
        super().__init__(mailbox)
        self._calls = running.calls
        self._pool = pool
        self._around = around

    def receive(self, message: Command) -> int | None:  # noqa: C901  # One arm a message.
        """Start a call, or take note of how one goes on."""
        match message:
            case Execute(call=call):
                self._step(call, self._execute)
            case Returned():
                self._returned(message)
            case Cancel(call=call, reason=reason):
                self._cancel(call, reason)
            case Replied(answer=answer):
                self._replied(answer)
            case Sampled(call=call):
                self._step(call, partial(self._sampled, message=message))
            case gate.Answered(call=call, refusal=refusal):
                self._step(call, partial(self._answered, refusal=refusal))
            case Sweep(old=old):
                self._sweep(old)
            case Abort(reason=reason):
                for call in list(self._calls.values()):
                    self._finish(call, text(reason, is_error=True), ended=ABORTED)
            case GetRunning():
                return sum(not call.has_ended() for call in self._calls.values())
            case _:
                assert_never(message)
        return None

    def on_stop(self) -> None:
        """Stop the workers that are idle; a busy one ends with the process."""
        self._pool.stop()

    def _step(self, call: Call, step: Callable[[Call], None]) -> None:
        """Take a step with a call. When it breaks, the call ends here, and does not count as running for ever."""
        try:
            step(call)
        except BaseException:
            self._finish(call, text(str(Internal()), is_error=True))
            raise

    def _execute(self, call: Call) -> None:
        if call.has_ended():
            return
        self._calls[call.call_id] = call
        entry = self._entry(call)
        if entry is None:
            return
        spec = entry.spec
        match decide(self._around.approval, spec.name, spec.tier, past_mode=spec.past_mode):
            case Rule.ALLOW:
                self._start(call, entry)
            case Rule.DENY:
                self._finish(call, calls.refused(denied(call.tool), call))
            case Rule.PROMPT:
                self._prompt(call)

    def _prompt(self, call: Call) -> None:
        """Have somebody asked: the caller's own user where the operator wants that and it can be, else the operator."""
        if self._around.grants.covers(call.tool, call.session_id):
            self._execute_allowed(call)
        elif not self._around.approval.ask_caller:
            self._hold(call)
        elif consent.word(call.exchange.caller.answers) is not consent.Word.NOTHING:
            self._go_on(call)
        else:
            match self._around.interviews.ask(call, consent.question(call.tool, bytes(call.arguments))):
                case Encoded() as round_trip:
                    self._finish(call, round_trip)
                case Result() | Refusal():
                    self._hold(call)

    def _hold(self, call: Call) -> None:
        gate.wait(self._around.gate, call, run_calls=Ref(self.mailbox))

    def _go_on(self, call: Call) -> None:
        """Go on with a call whose caller has answered."""
        match consent.word(call.exchange.caller.answers):
            case consent.Word.NO:
                self._finish(call, text(consent.DECLINED, is_error=True))
            case consent.Word.UNABLE:
                self._hold(calls.with_answers(call, consent.without(call.exchange.caller.answers)))
            case _:
                self._execute_allowed(call)

    def _answered(self, call: Call, refusal: str | None) -> None:
        if call.has_ended():
            self._calls.pop(call.call_id, None)
        elif refusal is not None:
            self._finish(call, text(refusal, is_error=True))
        else:
            self._execute_allowed(call, said=GO_ON)

    def _execute_allowed(self, call: Call, *, said: str | None = None) -> None:
        """Run a call that has waited for somebody. Looked up again: meanwhile the tool may have been dropped."""
        entry = self._entry(call)
        if entry is not None:
            self._start(call, entry, said=said)

    def _entry(self, call: Call) -> Entry | None:
        try:
            return self._around.entry(call)
        except NotExposed as error:
            self._finish(call, calls.refused(error, call))
            return None

    def _start(self, call: Call, entry: Entry, *, said: str | None = None) -> None:
        context = self._around.context_for(call)
        if said is not None:
            # Over the 0 of "waiting" and under what a tool counts, because progress only rises.
            context.tell.progress(0.5, None, said)
        if entry.spec.lane is Lane.INLINE:
            outcome = calls.run(entry, call, context)
            if isinstance(outcome, Needs):
                self._ask(call, outcome)
            elif outcome is not PENDING:
                self._finish(call, outcome)
            return
        self._pool.run(Run(call, entry, context, self._around.audit_writer))

    def _returned(self, message: Returned) -> None:
        self._pool.free(message.worker)
        call = self._calls.get(message.call_id)
        if message.needs is not None and call is not None:
            self._step(call, partial(self._ask, needs=message.needs))
        elif not message.pending:
            self._calls.pop(message.call_id, None)

    def _ask(self, call: Call, needs: Needs) -> None:
        if (key := self._around.sampling.find(call, needs)) is not None:
            self._around.sampling.ask(call, needs, key)
            return
        ending = self._around.interviews.ask(call, needs)
        if ending is not None:
            self._finish(call, ending)

    def _sampled(self, call: Call, message: Sampled) -> None:
        if call.has_ended():
            return
        found = self._around.sampling.resume(call, message.needs, message.key, message.response)
        if isinstance(found, Result):
            self._finish(call, found)
            return
        self._calls[call.call_id] = found
        self._execute_allowed(found)

    def _replied(self, answer: Answer) -> None:
        found = self._around.interviews.answered(answer)
        if found is None:
            return
        call, ending = found
        if ending is not None:
            self._finish(call, ending)
        elif not call.has_ended():
            self._calls[call.call_id] = call
            self._step(call, self._go_on)

    def _cancel(self, call: Call, reason: str) -> None:
        self._finish(call, text(reason, is_error=True), ended=CANCELLED)
        self._around.let_go(call.call_id)

    def _finish(self, call: Call, result: Result | Encoded | Refusal, *, ended: str | None = None) -> None:
        self._calls.pop(call.call_id, None)
        audit.finish(self._around.audit_writer, call, result, ended=ended)

    def _sweep(self, old: tuple[Call, ...]) -> None:
        # PERF: another actor ends a pending call without telling: a message would wake this thread for every command,
        # just when its answer is on the way.
        for call in [call for call in self._calls.values() if call.has_ended()]:
            del self._calls[call.call_id]
        for run in self._pool.tend():
            self._finish(run.call, text(LOST, is_error=True))
        for call in old:
            if call.call_id not in self._calls:
                audit.finish(self._around.audit_writer, call, text(LOST, is_error=True))


def running(executor: Ref[Command]) -> int:
    """Ask how many calls are running or waiting."""
    return executor.ask(GetRunning(), timeout=5)


def sweep(executor: Ref[Command], old: tuple[Call, ...]) -> None:
    """Have those of these calls ended that nobody runs any more."""
    executor.tell(Sweep(old))


def cancel(executor: Ref[Command], call: Call, reason: str = WITHDRAWN) -> None:
    """Have a call ended that is not wanted any more; the reason is what the caller is told."""
    executor.insist(Cancel(call, reason))


def sampled(executor: Ref[Command], call: Call, needs: Needs, key: str, response: Response) -> None:
    """Pass on a model's answer to a question of a tool."""
    executor.insist(Sampled(call, needs, key, response))


def replied(executor: Ref[Command], answer: Answer) -> None:
    """Pass on a client's answer to a question of a tool."""
    executor.insist(Replied(answer))


def abort(executor: Ref[Command], reason: str) -> None:
    """Have every running call ended."""
    executor.insist(Abort(reason))
