"""The agents: the one that owns every session, so that a prompt, an answer and the end of a turn come in one order.

A thin shell around ``AgentSessions``. Between turns a session is looked after here. So whether a turn may begin is
decided here first, and one that is refused costs no thread. Calls are answered here, behind what is kept.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar, assert_never, cast

from a2mcp.errors import A2mcpError, BadArgument, CannotKeep, ToolError
from a2mcp.inference import replies
from a2mcp.inference.admission import can_be_asked
from a2mcp.inference.ledger import Spent
from a2mcp.inference.questions import Question
from a2mcp.inference.runner import Item, Line, Told, Waiter
from a2mcp.inference.transcript import MAIN, Entry, Kind, Session, State, title_of
from a2mcp.inference.transcripts import Happened
from a2mcp.policy.waiting import random_id
from a2mcp.protocol.versions.agent import AGENT
from a2mcp.tools import agents as tools
from a2mcp.tools.agents import AgentParams
from a2mcp.tools.context import SILENT, Teller, Ticket
from a2mcp.tools.result import text
from a2mcp.types import SessionId
from actors import agent
from actors.agent import LiveSession
from actors.agentsessions import AgentSessions
from actors.jobs import Finish
from actors.kit import Actor
from actors.ref import Ask, Mailbox, Message, Ref

if TYPE_CHECKING:
    from a2mcp.clock import Clock
    from a2mcp.tools.call import Call

INTERRUPTED = "The daemon stopped before this turn had ended."


class Serve(Message, frozen=True):
    """Answer a call of a tool ``agent_…``."""

    ticket: Ticket
    params: AgentParams
    finish: Finish
    tell: Teller = SILENT

    def failed(self, error: A2mcpError) -> None:
        """End the call with the error."""
        self.finish(self.ticket, text(str(error), is_error=True))


class Keep(Message, frozen=True):
    """Keep what happened in a session that is alive."""

    happened: Happened


class Tell(Message, frozen=True):
    """Answer these calls, behind what was kept before."""

    told: tuple[Told, ...]


class WentIdle(Message, frozen=True):
    """Nothing goes on in a session any more, if its actor has seen to all that it was left."""

    live: LiveSession
    handled: int


class Tend(Message, frozen=True):
    """Look for calls that have waited long enough, and for actors that are gone. Once a second."""


class StopAll(Message, frozen=True):
    """End every turn and begin no more: the daemon stops."""


class Notice(Message, frozen=True):
    """Let the Main session know what happened on the host."""

    text: str
    wake: bool


class Spend(Message, frozen=True):
    """Keep what was spent on no session."""

    spent: Spent


class GetSessions(Ask[tuple[Session, ...]], frozen=True):
    """Ask for the facts of all sessions, the one that was busy last at the front."""


class GetTail(Ask["tuple[Session, tuple[Entry, ...]] | None"], frozen=True):
    """Ask for a session and its last entries."""

    session: SessionId
    count: int


Command = Serve | Keep | Tell | WentIdle | Tend | StopAll | Notice | Spend | GetSessions | GetTail


class Agents(Actor[Command]):
    """Owns the sessions of agents.

    Args:
        mailbox: made by ``mailbox_for``.
        agent_sessions: every session.
        clock: for how long calls wait.
    """

    MAILBOX: ClassVar[int] = 65_536

    def __init__(self, mailbox: Mailbox, *, agent_sessions: AgentSessions, clock: Clock) -> None:
        super().__init__(mailbox)
        self._sessions = agent_sessions
        self._clock = clock

    def on_start(self) -> None:
        """End what a killed daemon left, and know what it spent today; nothing is touched where there is no agent."""
        if can_be_asked(self._sessions.services.admission.registry):
            with contextlib.suppress(CannotKeep):  # Has been said; whoever runs an agent is told again.
                self._sessions.open()

    def receive(self, message: Command) -> object:  # noqa: C901  # One arm a message.
        """Look after sessions."""
        match message:
            case Serve():
                self._serve(message)
            case Keep(happened=happened):
                self._sessions.keep_quietly(happened)
            case Tell(told=told):
                self._sessions.tell(told)
            case WentIdle(live=live, handled=handled):
                self._sessions.went_idle(live, handled)
            case Tend():
                self._sessions.tend()
            case StopAll():
                self._sessions.interrupt(INTERRUPTED)
            case Notice(text=said, wake=wake):
                self._sessions.submit(self._sessions.find(MAIN), agent.Notice(said, wake))
            case Spend(spent=spent):
                self._sessions.spend(spent)
            case GetSessions():
                return tuple(self._sessions.transcripts.sessions())
            case GetTail(session=session, count=count):
                return self._sessions.tail(session, count)
            case _:
                assert_never(message)
        return None

    def on_stop(self) -> None:
        """Let the sessions' actors end, keep what they still leave, and let go of the file."""
        self._sessions.halt()
        while not self.mailbox.empty():
            self.handle_one(self.mailbox.get_nowait())
        self._sessions.transcripts.close()

    # --- the tools ----------------------------------------------------------------------------------------------------

    def _serve(self, message: Serve) -> None:  # noqa: C901  # One arm a tool.
        params = message.params
        match params:
            case tools.RunParams(prompt=prompt, model=model):
                self._run(message, prompt, model)
            case tools.ContinueParams(session=session, prompt=prompt):
                self._submit(session, agent.Put(self._prompt(message, prompt, params.wait)))
            case tools.WaitParams(session=session, wait=wait):
                self._submit(session, agent.Watch(self._waiter(message, wait)))
            case tools.AskParams(session=session):
                self._submit(session, agent.Ask(self._question(message, params)))
            case tools.CancelParams(session=session):
                self._submit(session, agent.Cancel(message.ticket))
            case tools.AnswerParams(id=question, text=answer):
                self._submit(_own_session(message.ticket), agent.Answer(message.ticket, question, answer))
            case tools.ReadParams():
                self._read(message, params)
            case tools.ListParams():
                self._list(message, params)
            case tools.StatusParams():
                message.finish(message.ticket, replies.status(self._sessions.facts()))
            case _:
                assert_never(params)

    def _run(self, message: Serve, prompt: str, model: str | None) -> None:
        registry = self._sessions.services.admission.registry
        if model is not None and registry.find(model) is None:
            known = ", ".join(row.ref for row in registry.rows() if row.usable)
            raise BadArgument("model", "the name of a model", f"'{model[:80]}'", hint=f"There are: {known}.")
        session = self._sessions.make(title=title_of(prompt), client=_client(message.ticket), model=model)
        wait = cast("tools.RunParams", message.params).wait
        self._sessions.submit(session, agent.Put(self._prompt(message, prompt, wait)))

    def _submit(self, session: str, request: agent.Request) -> None:
        self._sessions.submit(self._sessions.find(SessionId(session)), request)

    def _read(self, message: Serve, params: tools.ReadParams) -> None:
        session = self._sessions.find(SessionId(params.session))
        after = params.after if params.after >= 0 else max(0, session.entries + params.after)
        entries = self._sessions.transcripts.window(session.id, after, params.limit)
        message.finish(message.ticket, replies.window(session, entries, replies.LONGEST))

    def _list(self, message: Serve, params: tools.ListParams) -> None:
        wanted = (params.query or "").casefold()
        found = [
            session
            for session in sorted(self._sessions.transcripts.sessions(), key=_place, reverse=True)
            if wanted in session.title.casefold()
            and (not params.running or session.state is State.RUNNING)
            and (params.cursor is None or _place(session) < params.cursor)
        ]
        shown = found[: params.limit]
        more = _place(shown[-1]) if len(found) > len(shown) else None
        message.finish(message.ticket, replies.listed(shown, more))

    def _prompt(self, message: Serve, prompt: str, wait: int) -> Item:
        line = Line(kind=Kind.PROMPT, text=prompt, by=_client(message.ticket))
        return Item(line=line, waiter=self._waiter(message, wait))

    def _question(self, message: Serve, params: tools.AskParams) -> Question:
        return Question(
            id=f"q{random_id()}",
            text=params.question,
            by=_client(message.ticket),
            waiter=self._waiter(message, params.wait),
        )

    def _waiter(self, message: Serve, wait: int) -> Waiter:
        return Waiter(ticket=message.ticket, until=self._clock.monotonic() + wait, tell=message.tell)


def _place(session: Session) -> str:
    """Where a session stands in the list, as a cursor."""
    return f"{session.updated_at}/{session.id}"


def _client(ticket: Ticket) -> str | None:
    # Our tickets are our calls: the executor made them.
    return cast("Call", ticket).exchange.caller.client


def _own_session(ticket: Ticket) -> str:
    """The session of the agent that makes this call.

    Raises:
        ToolError: the caller is no agent.
    """
    exchange = cast("Call", ticket).exchange
    if exchange.dialect is not AGENT or exchange.session_id is None:
        raise ToolError("Only the agent that was asked can answer.", hint="Callers ask with agent_ask.")
    return exchange.session_id


def tend(agents: Ref[Command]) -> None:
    """Have calls looked for that have waited long enough. Called once a second by the loop."""
    agents.insist(Tend())


def stop_all(agents: Ref[Command]) -> None:
    """Have every turn ended, and none begun."""
    agents.insist(StopAll())


def notice(agents: Ref[Command], said: str, *, wake: bool) -> None:
    """Let the Main session know what happened on the host; ``wake`` begins a turn for it."""
    agents.insist(Notice(said, wake))


def spend(agents: Ref[Command], spent: Spent) -> None:
    """Have kept what was spent on no session."""
    agents.insist(Spend(spent))


def sessions(agents: Ref[Command]) -> tuple[Session, ...]:
    """Ask for the facts of all sessions, the one that was busy last at the front."""
    return agents.ask(GetSessions(), timeout=5)


def tail(agents: Ref[Command], session: SessionId, count: int) -> tuple[Session, tuple[Entry, ...]] | None:
    """Ask for a session and its last entries; None where there is none."""
    return agents.ask(GetTail(session, count), timeout=5)
