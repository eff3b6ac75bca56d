"""Puts the actors together: the order in which they start, which is the reverse of the one in which they stop.

State is made here and handed to the actors, so that it outlives a restart. Whoever is told things starts before whoever
tells them.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from a2mcp.audit.journal import Journal
from a2mcp.config.paths import Home
from a2mcp.config.schema import Settings
from a2mcp.library.desk import Desk
from a2mcp.library.shelf import Library
from a2mcp.obtain.programs import Places, Programs
from a2mcp.policy.waiting import Waiting
from a2mcp.protocol.interviews import Interviews
from a2mcp.protocol.statetoken import StateTokens
from a2mcp.protocol.telling import CallTeller
from a2mcp.session.table import SessionTable
from a2mcp.tools.context import SILENT, Context, JobsPort, Limits, XferPort
from a2mcp.tools.registry import Registry
from a2mcp.tunnel.passage import Sign
from a2mcp.xfer.owner import Owner, Stand
from actors import audit, executor, fetcher, gate, jobs, sessions, tunnel, xfer
from actors.admission import Admission
from actors.audit import AuditWriter
from actors.executor import Executor, Running, Surroundings
from actors.fetcher import Fetcher
from actors.front import Front, Ways
from actors.gate import Gate
from actors.jobs import Jobs
from actors.kit import Actor
from actors.pool import Pool
from actors.ref import Ref
from actors.sessions import Sessions
from actors.supervisor import Child, Supervisor, look
from actors.tunnel import Line, Tunnel
from actors.xfer import Sharing, Xfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.auth.origin import AllowedHosts
    from a2mcp.clock import Clock
    from a2mcp.tools.call import Call
    from a2mcp.tools.context import Ticket
    from a2mcp.tools.result import Result

    ContextFor = Callable[[Call], Context]
    from actors.ref import Mailbox

GOING_DOWN: Final = "The daemon stopped before this call had ended."
KILL_AFTER_S: Final = 2.0
ORDER: Final[tuple[type[Actor[Any]], ...]] = (AuditWriter, Jobs, Gate, Fetcher, Tunnel, Xfer, Executor, Sessions)
"""Of starting; the reverse of stopping. Whoever is told things comes before whoever tells them."""


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What the actors stand on: everything that is decided before the first of them starts."""

    home: Home
    settings: Settings
    registry: Registry
    library: Library
    clock: Clock
    hosts: AllowedHosts
    origin: str
    """Our own address as this machine reaches it, ``http://127.0.0.1:4801``."""
    give_up: Callable[[str], None]
    """Called when restarting an actor does not help."""


class Refs(msgspec.Struct, frozen=True):
    """The ways to the actors, in the order of ``ORDER``."""

    audit: Ref[audit.Command]
    jobs: Ref[jobs.JobsMessage]
    gate: Ref[gate.Command]
    fetcher: Ref[fetcher.Fetch]
    tunnel: Ref[tunnel.Command]
    xfer: Ref[xfer.Command]
    executor: Ref[executor.Command]
    sessions: Ref[sessions.Command]


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

    def tick(self) -> None:
        """Look after what got lost. Called once a second by the server's loop."""
        self.front.tend(self.clock.monotonic())
        xfer.tend(self.refs.xfer, self.stand)
        look(self.supervisor)

    def abort(self, *, grace_s: float = KILL_AFTER_S) -> None:
        """End what still runs, with its record: commands by signal, calls with an error."""
        jobs.stop_all(self.refs.jobs, grace_s=grace_s)
        executor.abort(self.refs.executor, GOING_DOWN)

    def commands_run(self) -> bool:
        """Whether a command that was told to end has not ended yet. Waits for the actor's answer."""
        return jobs.running(self.refs.jobs) > 0

    def close_tunnel(self, *, at_once: bool) -> None:
        """Begin to close the tunnel, and end a download; their actors see to the end of it when they are stopped."""
        self.programs.cancel()
        tunnel.close(self.refs.tunnel, at_once=at_once)

    def stop(self) -> None:
        """Stop the actors, the last started first; each handles what its mailbox holds."""
        self.supervisor.stop_children()


def start(ground: Ground) -> System:
    """Start every actor; the system is ready when this returns."""
    boxes: dict[type[Actor[Any]], Mailbox] = {kind: kind.mailbox_for(kind.__name__) for kind in ORDER}
    refs = Refs(*(Ref(box) for box in boxes.values()))
    context_for = _contexts(ground, jobs.Port(refs.jobs), xfer.Port(refs.xfer, ground.clock))
    tokens = StateTokens(ground.settings.token, ground.clock)
    programs, sign, stand = _programs(ground), Sign(), Stand(ground.clock, ground.settings.xfer)
    makers: tuple[Callable[[Any], Actor[Any]], ...] = (
        _audit_writer(ground),
        _jobs(ground, refs),
        _gate(ground),
        partial(Fetcher, programs=programs, audit_writer=refs.audit),
        _tunnel(ground, refs, sign),
        _xfer(ground, refs, sign, stand),
        _executor(ground, refs, context_for, tokens),
        _sessions(ground, refs),
    )
    supervisor = Supervisor(Supervisor.mailbox_for("Supervisor"), clock=ground.clock, give_up=ground.give_up)
    supervisor.start_children([Child(box, make) for box, make in zip(boxes.values(), makers, strict=True)])
    return System(_front(ground, refs, context_for, tokens), refs, supervisor, ground.clock, programs, sign, stand)


def _front(ground: Ground, refs: Refs, context_for: ContextFor, tokens: StateTokens) -> Front:
    admission = Admission(run_calls=refs.executor, in_flight=ground.settings.limits.in_flight, clock=ground.clock)
    ways = Ways(
        sessions=refs.sessions,
        audit=refs.audit,
        executor=refs.executor,
        registry=ground.registry,
        library=ground.library,
        tokens=tokens,
        context_for=context_for,
    )
    return Front(admission, ways)


def _audit_writer(ground: Ground) -> Callable[[Mailbox], AuditWriter]:
    journal = Journal(ground.home.audit, clock=ground.clock, sync=ground.settings.audit.sync)
    return partial(AuditWriter, journal=journal, clock=ground.clock)


def _jobs(ground: Ground, refs: Refs) -> Callable[[Any], Jobs]:
    runs = jobs.runs_for(ground.home.root, ground.clock, _limits(ground))
    return partial(Jobs, runs=runs, finish=partial(_finish, refs))


def _finish(refs: Refs, ticket: Ticket, result: Result, *, ended: str | None = None) -> None:
    # Our tickets are our calls: the executor made them.
    audit.finish(refs.audit, cast("Call", ticket), result, ended=ended)
    executor.ended(refs.executor, ticket.call_id)


def _gate(ground: Ground) -> Callable[[Mailbox], Gate]:
    return partial(Gate, waiting=Waiting(ground.settings.limits.in_flight, ground.clock))


def _programs(ground: Ground) -> Programs:
    home, xfer = ground.home, ground.settings.xfer
    places = Places(folder=home.programs, record=home.installs, pins=home.pins)
    return Programs({"dufs": xfer.dufs, "cloudflared": xfer.cloudflared}, places, ground.clock)


def _tunnel(ground: Ground, refs: Refs, sign: Sign) -> Callable[[Mailbox], Tunnel]:
    line = Line(
        origin=ground.origin,
        hosts=ground.hosts,
        names=(ground.settings.host, *ground.settings.allowed_hosts),
        sign=sign,
        clock=ground.clock,
        refs=(refs.tunnel, refs.fetcher, refs.audit),
    )
    return partial(Tunnel, line=line)


def _xfer(ground: Ground, refs: Refs, sign: Sign, stand: Stand) -> Callable[[Mailbox], Xfer]:
    record = partial(audit.record, refs.audit, "xfer")
    sharing = Sharing(
        owner=Owner(stand, ground.clock, port=int(ground.origin.rpartition(":")[2]), record=record),
        stand=stand,
        origin=ground.origin,
        public=lambda: sign.url,
        clock=ground.clock,
        finish=partial(_finish, refs),
        me=refs.xfer,
        fetcher=refs.fetcher,
    )
    return partial(Xfer, sharing=sharing)


def _executor(
    ground: Ground, refs: Refs, context_for: ContextFor, tokens: StateTokens
) -> Callable[[Mailbox], Executor]:
    around = Surroundings(
        registry=ground.registry,
        approval=ground.settings.approval,
        context_for=context_for,
        audit_writer=refs.audit,
        gate=refs.gate,
        jobs=refs.jobs,
        interviews=Interviews(tokens, partial(executor.cancel, refs.executor)),
        desk=Desk(ground.library),
    )
    pool = Pool(clock=ground.clock, run_calls=refs.executor)
    return partial(Executor, running=Running(), pool=pool, around=around)


def _sessions(ground: Ground, refs: Refs) -> Callable[[Mailbox], Sessions]:
    table = SessionTable(clock=ground.clock, limit=ground.settings.limits.sessions)
    return partial(Sessions, table=table, audit_writer=refs.audit, run_calls=refs.executor)


def _limits(ground: Ground) -> Limits:
    limits = ground.settings.limits
    return Limits(output_bytes=limits.output_bytes, job_bytes=limits.job_bytes)


def _contexts(ground: Ground, port: JobsPort, xfer_port: XferPort) -> ContextFor:
    """Make what builds the context of each call."""
    limits = _limits(ground)
    cwd = ground.settings.cwd or Path(os.getcwd())  # noqa: PTH109  # Path.cwd() imports more at every start.
    home, clock = ground.home.root, ground.clock

    def context_for(call: Call) -> Context:
        caller = call.exchange.caller
        return Context(
            ticket=call,
            cwd=cwd,
            home=home,
            limits=limits,
            jobs=port,
            clock=clock,
            xfer=xfer_port,
            cancelled=call.has_ended,
            tell=CallTeller(call.exchange, call.tool) if call.exchange.dialect.streams else SILENT,
            answers=caller.answers,
            capabilities=caller.capabilities,
            state=caller.state,
        )

    return context_for
