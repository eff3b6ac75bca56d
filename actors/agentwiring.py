"""Puts the sessions of agents together, and lets callers see the agent's tools while there is a model for it."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.host.joblog import State
from a2mcp.inference import replies
from a2mcp.inference.admission import Admission, can_be_asked, installed
from a2mcp.inference.instructions import instructions
from a2mcp.inference.ledger import Budget, Ledger
from a2mcp.inference.transcript import State as Standing
from a2mcp.inference.transcripts import Transcripts
from a2mcp.tools.agents import AgentHost
from a2mcp.tools.commandtext import outcome
from actors import agents, audit, inference
from actors.agentsessions import AgentSessions
from actors.contexts import cwd_of
from actors.samples import Samples
from actors.turnrunner import Keeper, Services
from actors.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from a2mcp.host.joblog import Record
    from a2mcp.inference.runner import Told
    from a2mcp.types import JsonObject, SessionId
    from actors.front import Front
    from actors.setup import Refs, Setup

TITLE: Final = 100
"""Characters of a command in what the Main session is told."""

logger = logging.getLogger("a2mcp.inference")


def agent_sessions_for(setup: Setup, refs: Refs, front: Front) -> AgentSessions:
    """Make the sessions of agents. Touches no file and starts nothing.

    Args:
        setup: what was decided before.
        refs: the ways to the actors.
        front: what makes calls, as the edge has it make them.
    """
    settings, models, clock = setup.settings.agent, setup.models, setup.clock
    budget = Budget(tokens=settings.budget_tokens, requests=settings.budget_requests)
    services = Services(
        admission=Admission(models.registry, Ledger(clock, budget)),
        overrides=models.overrides,
        turns=Turns(),
        registry=setup.registry,
        call_tool=front.call,
        sample=front.sample,
        instructions=partial(instructions, str(cwd_of(setup.settings))),
        steps=settings.steps,
        retries=settings.retries,
    )
    ref = refs.agents
    return AgentSessions(
        transcripts=Transcripts(setup.home.agents, clock, kept_bytes=settings.kept_bytes),
        services=services,
        most=settings.running,
        away=Keeper(
            keep=lambda happened: ref.insist(agents.Keep(happened)),
            answer=lambda told: ref.insist(agents.Tell(told)),
            launch=lambda: None,
        ),
        went_idle=lambda live, handled: ref.insist(agents.WentIdle(live, handled)),
        record=partial(_record, refs),
        made=lambda: inference.rebuilt(refs.inference),
        tell=partial(_tell, refs),
        samples=Samples(services, partial(audit.complete, refs.audit), partial(agents.spend, refs.agents)),
        clock=clock,
    )


def warn(setup: Setup) -> None:
    """Say what is missing where there is a model and nothing that can ask it."""
    row = setup.models.registry.chosen()
    if row is not None and row.usable and not installed():
        logger.warning(
            "[a2mcp] warning: models.yml names a model, but nothing here can ask it: install the extra 'a2mcp[agent]'"
        )


def offer(setup: Setup) -> None:
    """Offer the agent's tools while there is a model for it; who listens is told of a change."""
    for host in setup.registry.hosts():
        if isinstance(host, AgentHost):
            host.offer(can_be_asked(setup.models.registry))


def job_notice(setup: Setup, refs: Refs) -> Callable[[Record], None]:
    """Make what is told how a job stands: the Main session hears of its end, where there is a model to hear it."""

    def told(record: Record) -> None:
        if record.state is State.ENDED and record.id is not None and can_be_asked(setup.models.registry):
            said = f"Job {record.id} ({record.command[:TITLE]}) has ended: {outcome(record)}"
            wake = setup.models.overrides.read("agent.wake", setup.settings.agent.wake)
            agents.notice(refs.agents, said, wake=wake)

    return told


def shown(refs: Refs) -> list[JsonObject]:
    """The facts of every session, for whoever looks."""
    return [replies.facts(session) for session in agents.sessions(refs.agents)]


def shown_closely(refs: Refs, session: SessionId, count: int) -> JsonObject | None:
    """The facts of one session and its last entries; None where there is none."""
    found = agents.tail(refs.agents, session, count)
    if found is None:
        return None
    facts, entries = found
    return {
        "alive": facts.state is Standing.RUNNING,
        "agent": replies.facts(facts),
        "transcript": msgspec.to_builtins(entries),
    }


def each(*listeners: Callable[[Any], None]) -> Callable[[Any], None]:
    """Tell all of them."""

    def told(news: Any) -> None:
        for listener in listeners:
            listener(news)

    return told


def _record(refs: Refs, session: SessionId | None, args: JsonObject) -> None:
    audit.record(refs.audit, "agent", session, args)


def _tell(refs: Refs, told: Iterable[Told]) -> None:
    for each_told in told:
        audit.complete(refs.audit, each_told.ticket, each_told.result)
