"""The sessions of agents: each, on disk or alive, and the actors of those in which a turn goes on.

Owned by the actor ``Agents`` and outlives it. A session is looked after here between turns and by its own actor during
them: the runner hands it over when a turn begins, and ``went_idle`` takes it back when nothing is left to do.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.clock import iso
from a2mcp.errors import A2mcpError, CannotKeep, ToolError
from a2mcp.inference.conversation import Conversation
from a2mcp.inference.transcript import MAIN, AgentFacts, Entry, Kind, Session, new_session
from a2mcp.inference.transcripts import Happened, Transcripts
from a2mcp.policy.waiting import random_id
from a2mcp.types import SessionId
from actors import agent
from actors.agent import Agent, LiveSession, Request
from actors.kit import halt, launch
from actors.turnrunner import Keeper, Services, TurnRunner

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.clock import Clock
    from a2mcp.inference.ledger import Spent
    from a2mcp.inference.runner import Told
    from a2mcp.types import JsonObject
    from actors.samples import Samples

STOP_S: Final = 1.0
"""For the actor of a session to end, when the daemon does."""


class AgentSessions:
    """Every session.

    Args:
        transcripts: where they are kept.
        services: what their turns work with.
        most: how many turns may go on at once.
        away: how a session's own actor reaches whoever owns these sessions.
        went_idle: has that owner told that nothing goes on in a session, and how many requests were handled.
        record: writes what is not a call into the audit log.
        made: is told of each new session: what is denied must be denied in it, too.
        tell: answers calls.
        samples: asks models for tools, which is no session.
        clock: for times.
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing that a session can reach
        self,
        *,
        transcripts: Transcripts,
        services: Services,
        most: int,
        away: Keeper,
        went_idle: Callable[[LiveSession, int], None],
        record: Callable[[SessionId | None, JsonObject], None],
        made: Callable[[], None],
        tell: Callable[[tuple[Told, ...]], None],
        samples: Samples,
        clock: Clock,
    ) -> None:
        self.transcripts = transcripts
        self.services = services
        self.live: dict[SessionId, LiveSession] = {}
        self.tell = tell
        self.samples = samples
        self.turns = 0
        """Turns that have ended since the start, refused ones included."""
        self._actors: dict[SessionId, Agent] = {}
        self._most = most
        self._away = away
        self._went_idle = went_idle
        self._record = record
        self._made = made
        self._clock = clock
        self._opened = False

    # --- sessions -----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Count what was spent today by a daemon before this one, once, before anything is spent."""
        if not self._opened:
            ledger = self.services.admission.ledger
            ledger.restore(ledger.day(), self.transcripts.spent(ledger.day()))
            self._opened = True

    def make(self, *, title: str, client: str | None, model: str | None) -> Session:
        """Make the facts of a session that is not there yet."""
        while self.transcripts.session(session := SessionId(f"a{random_id()}")) is not None:
            pass
        self._made()
        return new_session(session, self._now(), title=title, client=client, model=model)

    def find(self, session: SessionId) -> Session:
        """The facts of a session, as far as they are kept.

        Raises:
            ToolError: there is none.
        """
        found = self.transcripts.session(session)
        if found is None and session == MAIN:
            return new_session(MAIN, self._now(), title="What happens on this host", client=None, model=None)
        if found is None:
            raise ToolError(f"There is no session '{session[:40]}'.", hint="Call agent_list for the ids.")
        return found

    def facts(self) -> AgentFacts:
        """How the agent is, for whoever asks. May be called from any thread: reads only what is replaced as a whole."""
        admission = self.services.admission
        row = admission.registry.chosen()
        usable = row is not None and row.usable
        return AgentFacts(
            model=row.ref if row is not None and usable else None,
            running=len(self.live),
            turns=self.turns,
            today=admission.ledger.today,
            total=admission.ledger.total,
            refusal=self._refusal() if usable else None,
        )

    def _refusal(self) -> str | None:
        try:
            self.services.admission.look()
        except A2mcpError as error:
            return str(error)
        return None

    def tail(self, session: SessionId, count: int) -> tuple[Session, tuple[Entry, ...]] | None:
        """A session and its last entries; None where there is none."""
        found = self.transcripts.session(session)
        if found is None:
            return None
        return found, tuple(self.transcripts.window(session, max(0, found.entries - count), count))

    def submit(self, session: Session, request: Request) -> None:
        """Do what is wanted of a session, or leave it to its actor.

        Raises:
            ToolError: it cannot be done.
        """
        live = self.live.get(session.id)
        if live is not None:
            live.sent += 1
            live.mailbox.put(request)
            return
        if isinstance(request, agent.Put | agent.Ask) and len(self.live) >= self._most:
            raise ToolError(
                f"{self._most} sessions are running, as many as may (setting 'agent.running').",
                hint="Wait for one with agent_wait, or end it with agent_cancel.",
            )
        self.open()
        agent.handle(self._live_session(session).conversation, request)

    def keep(self, happened: Happened) -> None:
        """Keep what happened, and record a turn that has ended.

        Raises:
            CannotKeep: the disk does not take it.
        """
        for entry in happened.entries:
            if entry.kind is Kind.END:
                self._turn_ended(happened.session)
        self.transcripts.keep(happened)

    def keep_quietly(self, happened: Happened) -> None:
        """Keep what happened in a turn that goes on whatever the disk does."""
        with contextlib.suppress(CannotKeep):  # Has been said, and the turn costs the same either way.
            self.keep(happened)

    def spend(self, spent: Spent) -> None:
        """Keep what was spent on no session, and record it: what tools have asked of models."""
        self._record(None, {"action": "sampling", **msgspec.to_builtins(spent)})
        with contextlib.suppress(CannotKeep):  # Has been said; it counts until the daemon ends.
            self.open()
            self.transcripts.spend(spent)

    # --- their actors -------------------------------------------------------------------------------------------------

    def went_idle(self, live: LiveSession, handled: int) -> None:
        """Let go of a session's actor, unless something was left for it meanwhile."""
        session = live.conversation.session
        if self.live.get(session.id) is not live or live.sent != handled:
            return
        del self.live[session.id]
        halt(self._actors.pop(session.id), timeout=0)

    def tend(self) -> None:
        """Have sessions look for calls that have waited long enough; start actors anew that are gone."""
        for session, live in list(self.live.items()):
            actor = self._actors.get(session)
            if actor is None or not actor.alive():
                self._start(live)
            live.mailbox.put(agent.Tend())

    def interrupt(self, why: str) -> None:
        """End every turn, and begin no more."""
        self.services.closing = True
        for live in self.live.values():
            live.sent += 1
            live.mailbox.put(agent.Interrupt(why))

    def halt(self) -> None:
        """Let the actors end."""
        for actor in self._actors.values():
            halt(actor, timeout=STOP_S)

    def _live_session(self, session: Session) -> LiveSession:
        mailbox = Agent.mailbox_for(f"Agent-{session.id}")
        here = Keeper(self.keep, self.tell, lambda: self._launch(live))
        history = self.transcripts.history(session.id)
        runner = TurnRunner(session.id, session.model, history, self.services, mailbox, here, self._away)
        live = LiveSession(Conversation(session, runner, self._clock), mailbox)
        return live

    def _launch(self, live: LiveSession) -> None:
        self.live[live.conversation.session.id] = live
        self._start(live)

    def _start(self, live: LiveSession) -> None:
        actor = Agent(live.mailbox, live=live, went_idle=self._went_idle)
        launch(actor)
        self._actors[live.conversation.session.id] = actor

    def _turn_ended(self, session: Session) -> None:
        self.turns += 1
        facts: JsonObject = {
            "action": "turn",
            "outcome": session.outcome,
            "model": session.model,
            **msgspec.to_builtins(session.turn),
        }
        self._record(session.id, {name: fact for name, fact in facts.items() if fact is not None})

    def _now(self) -> str:
        return iso(self._clock.now())
