"""What is decided before the actors start, the ways to them, and what outlives them.

State is made here and handed to the actors, so that it survives a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from a2mcp.audit.journal import Journal
from a2mcp.config.paths import Home
from a2mcp.config.schema import Settings
from a2mcp.host.runs import Runs
from a2mcp.obtain.programs import Places, Programs
from a2mcp.policy.grants import Grants
from a2mcp.policy.waiting import Waiting
from a2mcp.protocol.statetoken import StateTokens
from a2mcp.session.table import SessionTable
from a2mcp.tunnel.passage import Sign
from a2mcp.xfer.owner import Stand
from actors import agents, audit, events, executor, fetcher, gate, inference, jobs, sessions, tunnel, xfer
from actors.agentwiring import each, job_notice
from actors.contexts import limits_of
from actors.observing import Observing, job_news, observing, session_news
from actors.ref import Ref

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.auth.origin import AllowedHosts
    from a2mcp.clock import Clock
    from a2mcp.inference.models import Models
    from a2mcp.library.shelf import Library
    from a2mcp.tools.registry import Registry
    from actors.doors import Room


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What the actors are made with: everything that is decided before the first of them starts."""

    home: Home
    settings: Settings
    registry: Registry
    library: Library
    clock: Clock
    models: Models
    hosts: AllowedHosts
    origin: str
    """Our own address as this machine reaches it, ``http://127.0.0.1:4801``."""
    room: Room
    give_up: Callable[[str], None]
    """Called when restarting an actor does not help."""


class Refs(msgspec.Struct, frozen=True):
    """The ways to the actors, in the order of ``ORDER``."""

    events: Ref[events.Command]
    audit: Ref[audit.Command]
    jobs: Ref[jobs.JobsMessage]
    gate: Ref[gate.Command]
    fetcher: Ref[fetcher.Fetch]
    tunnel: Ref[tunnel.Command]
    xfer: Ref[xfer.Command]
    inference: Ref[inference.Command]
    agents: Ref[agents.Command]
    executor: Ref[executor.Command]
    sessions: Ref[sessions.Command]


class State(msgspec.Struct, frozen=True):
    """What outlives every actor."""

    seen: Observing
    journal: Journal
    runs: Runs
    sessions: SessionTable
    waiting: Waiting[gate.Held]
    grants: Grants
    programs: Programs
    tokens: StateTokens
    sign: Sign
    stand: Stand


def state_for(setup: Setup, refs: Refs) -> State:
    """Make it."""
    settings, clock = setup.settings, setup.clock
    seen = observing(refs.events, setup.home, settings.observe, setup.registry, clock)
    saved = each(job_news(seen.news), job_notice(setup, refs))
    return State(
        seen=seen,
        journal=Journal(setup.home.audit, clock=clock, sync=settings.audit.sync, limit=settings.audit.bytes // 2),
        runs=jobs.runs_for(setup.home.root, clock, limits_of(settings), saved),
        sessions=SessionTable(clock=clock, limit=settings.limits.sessions, forgotten=session_news(seen.news)),
        waiting=Waiting(setup.room.calls, clock),
        grants=Grants(setup.home.grants, clock),
        programs=_programs(setup),
        tokens=StateTokens(settings.token, clock),
        sign=Sign(),
        stand=Stand(clock, settings.xfer),
    )


def _programs(setup: Setup) -> Programs:
    home, xfer = setup.home, setup.settings.xfer
    places = Places(folder=home.programs, record=home.installs, pins=home.pins)
    return Programs({"dufs": xfer.dufs, "cloudflared": xfer.cloudflared}, places, setup.clock)
