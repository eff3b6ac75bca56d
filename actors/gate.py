"""The gate: holds the calls that wait for the operator. It never approves by itself."""

from __future__ import annotations

from typing import Any, ClassVar, assert_never

from a2mcp.errors import A2mcpError
from a2mcp.policy.waiting import Request, Waiting, shown_arguments
from a2mcp.tools.call import Call
from a2mcp.types import CallId
from actors.kit import Actor
from actors.ref import Ask, Mailbox, Message, Ref


class Answered(Message, frozen=True):
    """Told to the executor: the call may run, or is refused with this text."""

    call: Call
    refusal: str | None


class Wait(Message, frozen=True):
    """Hold a call until the operator answers."""

    call: Call
    run_calls: Ref[Any]

    def failed(self, error: A2mcpError) -> None:
        """Refuse the call: nobody holds it."""
        self.run_calls.insist(Answered(self.call, str(error)))


class Answer(Ask[bool], frozen=True):
    """The operator's word about a waiting call."""

    request_id: str
    approve: bool
    reason: str


class GetWaiting(Ask[tuple[Request, ...]], frozen=True):
    """Ask which calls wait."""


Held = tuple[Call, Ref[Any]]
"""A call, and the executor that is told the answer."""


class Forget(Message, frozen=True):
    """Let go of a call that has ended otherwise."""

    call_id: CallId


Command = Wait | Answer | Forget | GetWaiting


class Gate(Actor[Command]):
    """Owns the table of waiting calls, which outlives it: a restart forgets none."""

    MAILBOX: ClassVar[int] = 65_536

    def __init__(self, mailbox: Mailbox, *, waiting: Waiting[Held]) -> None:
        super().__init__(mailbox)
        self._waiting = waiting

    def receive(self, message: Command) -> bool | tuple[Request, ...] | None:
        """Hold, answer or list."""
        match message:
            case Wait(call=call, run_calls=run_calls):
                self._hold(call, run_calls)
            case Answer(request_id=request_id, approve=approve, reason=reason):
                return self._answer(request_id, None if approve else _refusal(reason))
            case Forget(call_id=call_id):
                self._waiting.forget(call_id)
            case GetWaiting():
                return tuple(self._waiting.list())
            case _:
                assert_never(message)
        return None

    def _hold(self, call: Call, run_calls: Ref[Any]) -> None:
        try:
            self._waiting.add(
                (call, run_calls),
                call_id=call.call_id,
                tool=call.tool,
                args=shown_arguments(bytes(call.arguments)),
                session_id=call.session_id,
            )
        except A2mcpError as error:
            run_calls.insist(Answered(call, str(error)))

    def _answer(self, request_id: str, refusal: str | None) -> bool:
        held = self._waiting.answer(request_id)
        if held is None or held[0].has_ended():
            return False
        call, run_calls = held
        run_calls.insist(Answered(call, refusal))
        return True


def _refusal(reason: str) -> str:
    said = f": {reason}" if reason else "."
    return f"The operator denied this call{said}"


def wait(gate: Ref[Command], call: Call, *, run_calls: Ref[Any]) -> None:
    """Hold a call until the operator answers; the answer is told to the executor."""
    gate.insist(Wait(call, run_calls))


def answer(gate: Ref[Command], request_id: str, *, approve: bool, reason: str) -> bool:
    """Pass on the operator's word; False when no such call waits."""
    return gate.ask(Answer(request_id, approve, reason), timeout=5)


def forget(gate: Ref[Command], call_id: CallId) -> None:
    """Let go of a call that has ended otherwise."""
    gate.insist(Forget(call_id))


def waiting(gate: Ref[Command]) -> tuple[Request, ...]:
    """Ask which calls wait."""
    return gate.ask(GetWaiting(), timeout=5)
