"""What makes each actor, now and after each death: the actor with all that it is handed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from a2mcp.library.desk import Desk
from a2mcp.protocol.interviews import Interviews
from a2mcp.xfer.owner import Owner
from actors import audit, executor
from actors.agents import Agents
from actors.agentwiring import offer
from actors.audit import AuditWriter
from actors.executor import Executor
from actors.fetcher import Fetcher
from actors.gate import Gate
from actors.inference import Inference
from actors.jobs import Jobs
from actors.pool import Pool
from actors.sampling import Sampling
from actors.sessions import Sessions
from actors.surroundings import Running, Surroundings
from actors.tunnel import Line, Tunnel
from actors.xfer import Sharing, Xfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.tunnel.passage import Sign
    from a2mcp.xfer.owner import Stand
    from actors.agentsessions import AgentSessions
    from actors.contexts import ContextFor
    from actors.kit import Actor
    from actors.ref import Mailbox
    from actors.setup import Refs, Setup, State

    Maker = Callable[[Any], Actor[Any]]


def makers(
    setup: Setup, refs: Refs, state: State, agent_sessions: AgentSessions, context_for: ContextFor
) -> tuple[Maker, ...]:
    """What makes each actor, now and after each death, in the order of ``ORDER``."""
    news = state.seen.news
    return (
        state.seen.make,
        partial(AuditWriter, journal=state.journal, clock=setup.clock, written=news.written),
        partial(Jobs, runs=state.runs, finish=partial(audit.complete, refs.audit)),
        partial(Gate, waiting=state.waiting, grants=state.grants, news=news),
        partial(Fetcher, programs=state.programs, audit_writer=refs.audit),
        _tunnel(setup, refs, state.sign),
        _xfer(setup, refs, state.sign, state.stand),
        partial(
            Inference,
            models=setup.models,
            me=refs.inference,
            audit_writer=refs.audit,
            looked=partial(offer, setup),
        ),
        partial(Agents, agent_sessions=agent_sessions, clock=setup.clock),
        _executor(setup, refs, state, agent_sessions, context_for),
        partial(
            Sessions,
            table=state.sessions,
            audit_writer=refs.audit,
            run_calls=refs.executor,
            news=news,
        ),
    )


def _tunnel(setup: Setup, refs: Refs, sign: Sign) -> Callable[[Mailbox], Tunnel]:
    line = Line(
        origin=setup.origin,
        hosts=setup.hosts,
        names=(setup.settings.host, *setup.settings.allowed_hosts),
        sign=sign,
        clock=setup.clock,
        refs=(refs.tunnel, refs.fetcher, refs.audit),
    )
    return partial(Tunnel, line=line)


def _xfer(setup: Setup, refs: Refs, sign: Sign, stand: Stand) -> Callable[[Mailbox], Xfer]:
    record = partial(audit.record, refs.audit, "xfer")
    sharing = Sharing(
        owner=Owner(stand, setup.clock, port=int(setup.origin.rpartition(":")[2]), record=record),
        stand=stand,
        origin=setup.origin,
        public=lambda: sign.url,
        clock=setup.clock,
        finish=partial(audit.complete, refs.audit),
        me=refs.xfer,
        fetcher=refs.fetcher,
    )
    return partial(Xfer, sharing=sharing)


def _executor(
    setup: Setup, refs: Refs, state: State, agent_sessions: AgentSessions, context_for: ContextFor
) -> Callable[[Mailbox], Executor]:
    sampling = Sampling(setup.models.registry, agent_sessions.services.sample, partial(executor.sampled, refs.executor))
    around = Surroundings(
        registry=setup.registry,
        approval=setup.settings.approval,
        grants=state.grants,
        context_for=context_for,
        audit_writer=refs.audit,
        gate=refs.gate,
        jobs=refs.jobs,
        interviews=Interviews(state.tokens, partial(executor.cancel, refs.executor), sampling.possible),
        sampling=sampling,
        withdraw=agent_sessions.samples.withdraw,
        desk=Desk(setup.library),
    )
    pool = Pool(clock=setup.clock, run_calls=refs.executor)
    return partial(Executor, running=Running(), pool=pool, around=around)
