"""The gate: holds the calls that wait for the operator. It never approves by itself."""

from __future__ import annotations

from typing import Any, ClassVar, assert_never

import msgspec

from a2mcp.errors import A2mcpError
from a2mcp.observe.event import ANSWERED, WAITING, as_args
from a2mcp.policy.grants import Grant, Grants, Scope, Word, no_session
from a2mcp.policy.waiting import Request, Waiting, shown_arguments
from a2mcp.protocol.telling import CallTeller
from a2mcp.tools.call import Call
from a2mcp.types import CallId
from actors.events import News, no_news
from actors.kit import Actor
from actors.ref import Ask, Mailbox, Message, Ref

ASKED: str = "Waiting for the operator to allow this call."


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


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the operator's word."""

    counted: bool
    earlier: str | None = None
    """What was said about the call before, by somebody else or because it ended."""
    grant: Grant | None = None
    also: int = 0
    """Other waiting calls that the grant let go on."""


class Answer(Ask[Verdict], frozen=True):
    """The operator's word about a waiting call."""

    request_id: str
    word: Word


class GetWaiting(Ask[tuple[Request, ...]], frozen=True):
    """Ask which calls wait."""


class GetGrants(Ask[tuple[Grant, ...]], frozen=True):
    """Ask what is granted."""


class Revoke(Ask["Grant | None"], frozen=True):
    """Have a tool asked about again."""

    grant_id: str


class Expire(Message, frozen=True):
    """Refuse the calls that nobody has answered for so long."""

    timeout_s: float


Held = tuple[Call, Ref[Any]]
"""A call, and the executor that is told the answer."""


class Forget(Message, frozen=True):
    """Let go of a call that has ended otherwise."""

    call_id: CallId


Command = Wait | Answer | Forget | Expire | GetWaiting | GetGrants | Revoke


class Gate(Actor[Command]):
    """Owns the waiting calls and the grants, which outlive it: a restart forgets none."""

    MAILBOX: ClassVar[int] = 65_536

    def __init__(self, mailbox: Mailbox, *, waiting: Waiting[Held], grants: Grants, news: News = no_news) -> None:
        super().__init__(mailbox)
        self._waiting = waiting
        self._grants = grants
        self._news = news

    def receive(self, message: Command) -> object:
        """Hold, answer or list."""
        match message:
            case Wait(call=call, run_calls=run_calls):
                self._hold(call, run_calls)
            case Answer(request_id=request_id, word=word):
                return self._answer(request_id, word)
            case Forget(call_id=call_id):
                self._forget(call_id)
            case Expire(timeout_s=timeout_s):
                self._expire(timeout_s)
            case GetWaiting():
                return tuple(self._waiting.list())
            case GetGrants():
                return self._grants.list()
            case Revoke(grant_id=grant_id):
                return self._grants.revoke(grant_id)
            case _:
                assert_never(message)
        return None

    def _hold(self, call: Call, run_calls: Ref[Any]) -> None:
        if self._grants.covers(call.tool, call.session_id):
            # Granted after the executor had looked and before the call came here.
            run_calls.insist(Answered(call, None))
            return
        try:
            request = self._waiting.add(
                (call, run_calls),
                call_id=call.call_id,
                tool=call.tool,
                args=shown_arguments(bytes(call.arguments)),
                session_id=call.session_id,
                client=call.exchange.caller.client,
            )
        except A2mcpError as error:
            run_calls.insist(Answered(call, str(error)))
            return
        self._tell(request, "waiting", call)
        if call.exchange.dialect.streams:
            CallTeller(call.exchange, call.tool).progress(0, None, ASKED)

    def _answer(self, request_id: str, word: Word) -> Verdict:
        request = self._waiting.find(request_id)
        if request is None:
            return Verdict(counted=False, earlier=self._waiting.earlier(request_id))
        held = self._waiting.held(request_id)
        if held is not None and held[0].has_ended():
            # SECURITY: nothing is granted by a word about a call that is no more: nobody would be told of the grant.
            return Verdict(counted=False, earlier="withdrawn")
        if not word.approve:
            said = f": {word.reason}" if word.reason else "."
            counted = self._release(request, "denied", f"The operator denied this call{said}", reason=word.reason)
            return Verdict(counted=counted)
        # The grant comes first: one that cannot be kept must not look as if it were.
        grant = self._grant(request, word)
        counted = self._release(request, "approved", None, scope=word.scope)
        return Verdict(counted=counted, grant=grant, also=self._release_covered() if grant is not None else 0)

    def _grant(self, request: Request, word: Word) -> Grant | None:
        match word.scope:
            case Scope.ONCE:
                return None
            case Scope.SESSION:
                if request.session_id is None:
                    raise no_session()
                return self._grants.add(request.tool, session_id=request.session_id, for_s=word.for_s)
            case Scope.ALWAYS:
                return self._grants.add(request.tool, for_s=word.for_s)

    def _release_covered(self) -> int:
        covered = [one for one in self._waiting.list() if self._grants.covers(one.tool, one.session_id)]
        return sum(self._release(request, "approved", None, scope="granted") for request in covered)

    def _release(self, request: Request, status: str, refusal: str | None, **more: str) -> bool:
        """Let a call go on or refuse it; False when it has ended meanwhile."""
        held = self._waiting.answer(request.id, status)
        if held is None or held[0].has_ended():
            return False
        call, run_calls = held
        self._tell(request, status, call, **more)
        run_calls.insist(Answered(call, refusal))
        return True

    def _expire(self, timeout_s: float) -> None:
        for request in self._waiting.overdue(timeout_s):
            refusal = f"The operator did not answer within {timeout_s:g} s, so this call was not run."
            self._release(request, "expired", refusal)

    def _forget(self, call_id: CallId) -> None:
        request = next((one for one in self._waiting.list() if one.call_id == call_id), None)
        held = self._waiting.forget(call_id)
        if held is not None and request is not None:
            self._tell(request, "withdrawn", held[0])

    def _tell(self, request: Request, status: str, call: Call, **more: str) -> None:
        self._news(
            WAITING if status == "waiting" else ANSWERED,
            tool=request.tool,
            status=status,
            call=request.call_id,
            session=request.session_id,
            client=request.client,
            # Folded, as in the log: what is kept of an event must not hold what the log leaves out.
            args=as_args(id=request.id, arguments=call.summary.args, **more),
        )


def wait(gate: Ref[Command], call: Call, *, run_calls: Ref[Any]) -> None:
    """Hold a call until the operator answers; the answer is told to the executor."""
    gate.insist(Wait(call, run_calls))


def answer(gate: Ref[Command], request_id: str, word: Word) -> Verdict:
    """Pass on the operator's word.

    Raises:
        A2mcpError: it cannot reach as far as asked; nothing has changed.
    """
    return gate.ask(Answer(request_id, word), timeout=5)


def forget(gate: Ref[Command], call_id: CallId) -> None:
    """Let go of a call that has ended otherwise."""
    gate.insist(Forget(call_id))


def expire(gate: Ref[Command], timeout_s: float) -> None:
    """Refuse the calls that nobody has answered for so long."""
    gate.insist(Expire(timeout_s))


def waiting(gate: Ref[Command]) -> tuple[Request, ...]:
    """Ask which calls wait."""
    return gate.ask(GetWaiting(), timeout=5)


def grants(gate: Ref[Command]) -> tuple[Grant, ...]:
    """Ask what is granted."""
    return gate.ask(GetGrants(), timeout=5)


def revoke(gate: Ref[Command], grant_id: str) -> Grant | None:
    """Have a tool asked about again; None when there is no such grant."""
    return gate.ask(Revoke(grant_id), timeout=5)
