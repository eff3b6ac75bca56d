"""Puts the actors together: the order in which they start, which is the reverse of the one in which they stop.

State is made in ``setup.py`` and handed to the actors in ``makers.py``, so that it outlives a restart. Whoever is told
things starts before whoever tells them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.obtain.programs import Programs
from a2mcp.tunnel.passage import Sign
from a2mcp.xfer.owner import Stand
from actors import agents, audit, executor, gate, inference, jobs, tunnel, xfer
from actors.admission import Admission
from actors.agentport import Port as AgentsPort
from actors.agents import Agents
from actors.agentsessions import AgentSessions
from actors.agentwiring import agent_sessions_for, offer, warn
from actors.audit import AuditWriter
from actors.contexts import contexts
from actors.events import Events, Publisher
from actors.executor import Executor
from actors.fetcher import Fetcher
from actors.front import Front, Ways
from actors.gate import Gate
from actors.inference import Inference
from actors.jobport import Port as JobsPort
from actors.jobs import Jobs
from actors.kit import Actor
from actors.makers import makers
from actors.observing import Lookout, Sizes
from actors.ref import Ref
from actors.sessions import Sessions
from actors.setup import Refs, Setup, State, state_for
from actors.supervisor import Child, Supervisor, look
from actors.tunnel import Tunnel
from actors.xfer import Xfer

if TYPE_CHECKING:
    from a2mcp.clock import Clock
    from a2mcp.host.runs import Runs
    from a2mcp.inference.models import Models
    from a2mcp.protocol.statetoken import StateTokens
    from actors.contexts import ContextFor
    from actors.ref import Mailbox

GOING_DOWN: Final = "The daemon stopped before this call had ended."
KILL_AFTER_S: Final = 2.0
ORDER: Final[tuple[type[Actor[Any]], ...]] = (
    Events,
    AuditWriter,
    Jobs,
    Gate,
    Fetcher,
    Tunnel,
    Xfer,
    Inference,
    Agents,
    Executor,
    Sessions,
)
"""Of starting; the reverse of stopping. Whoever is told things comes before whoever tells them."""


class System(msgspec.Struct, frozen=True):
    """The running actors."""

    front: Front
    refs: Refs
    supervisor: Supervisor
    clock: Clock
    programs: Programs
    tunnel: Sign
    """The public address, for whoever wants to tell it."""
    stand: Stand
    """The share, for the route that serves it."""
    lookout: Lookout
    news: Publisher
    models: Models
    """What the host may ask, and the switch that denies it."""
    agent_sessions: AgentSessions
    """The sessions of agents, for whoever wants to know how many and what they cost."""
    approval_s: float | None

    def tick(self) -> None:
        """Look after what got lost. Called once a second by the server's loop."""
        now = self.clock.monotonic()
        self.front.tend(now)
        self.lookout.tend(now)
        if self.approval_s is not None:
            gate.expire(self.refs.gate, self.approval_s)
        xfer.tend(self.refs.xfer, self.stand)
        if self.agent_sessions.live:
            agents.tend(self.refs.agents)
        look(self.supervisor)

    def stop_agents(self) -> None:
        """End every turn of an agent, and begin none: what waits for one is answered."""
        agents.stop_all(self.refs.agents)

    def abort(self, *, grace_s: float = KILL_AFTER_S) -> None:
        """End what still runs, with its record: commands by signal, calls with an error."""
        jobs.stop_all(self.refs.jobs, grace_s=grace_s)
        executor.abort(self.refs.executor, GOING_DOWN)

    def commands_run(self) -> bool:
        """Whether a command that was told to end has not ended yet. Waits for the actor's answer."""
        return jobs.counts(self.refs.jobs).running > 0

    def close_tunnel(self, *, at_once: bool) -> None:
        """Begin to close the tunnel, and end a download; their actors see to the end of it when they are stopped."""
        self.programs.cancel()
        tunnel.close(self.refs.tunnel, at_once=at_once)

    def stop(self) -> None:
        """Stop the actors, the last started first; each handles what its mailbox holds."""
        self.supervisor.stop_children()


def start(setup: Setup) -> System:
    """Start every actor; the system is ready when this returns."""
    boxes: dict[type[Actor[Any]], Mailbox] = {kind: kind.mailbox_for(kind.__name__) for kind in ORDER}
    refs = Refs(*(Ref(box) for box in boxes.values()))
    state = state_for(setup, refs)
    # Each of the three needs the next: calls are made through the front, for sessions that tools can reach.
    front = _front(setup, refs, lambda call: context_for(call), state.tokens)  # noqa: PLW0108  # It comes below.
    agent_sessions = agent_sessions_for(setup, refs, front)
    context_for = _context_for(setup, refs, state.runs, agent_sessions)
    supervisor = Supervisor(Supervisor.mailbox_for("Supervisor"), clock=setup.clock, give_up=setup.give_up)
    supervisor.start_children(
        [
            Child(box, make)
            for box, make in zip(boxes.values(), makers(setup, refs, state, agent_sessions, context_for), strict=True)
        ]
    )
    if setup.settings.host_llm == "deny":
        inference.begin(refs.inference)
    warn(setup)
    offer(setup)
    sizes = _sizes(setup, state, agent_sessions, tuple(boxes.values()))
    return System(
        front=front,
        refs=refs,
        supervisor=supervisor,
        clock=setup.clock,
        programs=state.programs,
        tunnel=state.sign,
        stand=state.stand,
        lookout=Lookout(refs.events, state.seen.state, supervisor, front, sizes, setup.clock),
        news=state.seen.news,
        models=setup.models,
        agent_sessions=agent_sessions,
        approval_s=setup.settings.approval.timeout_s,
    )


def _sizes(setup: Setup, state: State, agent_sessions: AgentSessions, mailboxes: tuple[Mailbox, ...]) -> Sizes:
    return Sizes(
        mailboxes=mailboxes,
        journal=state.journal,
        sessions=state.sessions,
        waiting=state.waiting,
        runs=state.runs,
        connections=setup.room.connections,
        transfers=state.stand.transfers,
        switch=setup.models.switch,
        agent=agent_sessions.facts,
    )


def _context_for(setup: Setup, refs: Refs, runs: Runs, agent_sessions: AgentSessions) -> ContextFor:
    commands, shares = JobsPort(refs.jobs, runs.room), xfer.Port(refs.xfer, setup.clock)
    port = AgentsPort(refs.agents, partial(audit.complete, refs.audit), agent_sessions.samples)
    return contexts(setup.settings, setup.home.root, setup.clock, commands, shares, port)


def _front(setup: Setup, refs: Refs, context_for: ContextFor, tokens: StateTokens) -> Front:
    admission = Admission(run_calls=refs.executor, room=setup.room, clock=setup.clock)
    ways = Ways(
        sessions=refs.sessions,
        audit=refs.audit,
        executor=refs.executor,
        inference=refs.inference,
        registry=setup.registry,
        library=setup.library,
        tokens=tokens,
        context_for=context_for,
    )
    return Front(admission, ways)
