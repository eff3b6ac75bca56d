"""Puts the actors together: the order in which they start, which is the reverse of the one in which they stop.

State is made here and handed to the actors, so that it outlives a restart. Whoever is told things starts before whoever
tells them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from a2mcp.audit.journal import Journal
from a2mcp.config.paths import Home
from a2mcp.config.schema import Settings
from a2mcp.library.desk import Desk
from a2mcp.library.shelf import Library
from a2mcp.obtain.programs import Places, Programs
from a2mcp.policy.grants import Grants
from a2mcp.policy.waiting import Waiting
from a2mcp.protocol.interviews import Interviews
from a2mcp.protocol.statetoken import StateTokens
from a2mcp.session.table import SessionTable
from a2mcp.tools.registry import Registry
from a2mcp.tunnel.passage import Sign
from a2mcp.xfer.owner import Owner, Stand
from actors import audit, events, executor, fetcher, gate, jobs, sessions, tunnel, xfer
from actors.admission import Admission
from actors.audit import AuditWriter
from actors.contexts import contexts, limits_of
from actors.events import Events, Publisher
from actors.executor import Executor
from actors.fetcher import Fetcher
from actors.front import Front, Ways
from actors.gate import Gate
from actors.jobport import Port as JobsPort
from actors.jobs import Jobs
from actors.kit import Actor
from actors.observing import Lookout, Observing, Sizes, job_news, observing, session_news
from actors.pool import Pool
from actors.ref import Ref
from actors.sessions import Sessions
from actors.supervisor import Child, Supervisor, look
from actors.surroundings import Running, Surroundings
from actors.tunnel import Line, Tunnel
from actors.xfer import Sharing, Xfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.auth.origin import AllowedHosts
    from a2mcp.clock import Clock
    from a2mcp.tools.call import Call
    from a2mcp.tools.context import Ticket
    from a2mcp.tools.result import Result
    from actors.contexts import ContextFor

    Maker = Callable[[Any], Actor[Any]]
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
    Executor,
    Sessions,
)
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

    events: Ref[events.Command]
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
    lookout: Lookout
    news: Publisher
    approval_s: float | None

    def tick(self) -> None:
        """Look after what got lost. Called once a second by the server's loop."""
        now = self.clock.monotonic()
        self.front.tend(now)
        self.lookout.tend(now)
        if self.approval_s is not None:
            gate.expire(self.refs.gate, self.approval_s)
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


class _State(msgspec.Struct, frozen=True):
    """What outlives every actor."""

    seen: Observing
    journal: Journal
    sessions: SessionTable
    waiting: Waiting[gate.Held]
    grants: Grants
    programs: Programs
    tokens: StateTokens
    sign: Sign
    stand: Stand


def start(ground: Ground) -> System:
    """Start every actor; the system is ready when this returns."""
    boxes: dict[type[Actor[Any]], Mailbox] = {kind: kind.mailbox_for(kind.__name__) for kind in ORDER}
    refs = Refs(*(Ref(box) for box in boxes.values()))
    context_for = _context_for(ground, refs)
    state = _state(ground, refs)
    makers = _makers(ground, refs, state, context_for)
    supervisor = Supervisor(Supervisor.mailbox_for("Supervisor"), clock=ground.clock, give_up=ground.give_up)
    supervisor.start_children([Child(box, make) for box, make in zip(boxes.values(), makers, strict=True)])
    front = _front(ground, refs, context_for, state.tokens)
    sizes = Sizes(tuple(boxes.values()), state.journal, state.sessions, state.waiting, state.stand.transfers)
    return System(
        front=front,
        refs=refs,
        supervisor=supervisor,
        clock=ground.clock,
        programs=state.programs,
        tunnel=state.sign,
        stand=state.stand,
        lookout=Lookout(refs.events, state.seen.state, supervisor, front, sizes, ground.clock),
        news=state.seen.news,
        approval_s=ground.settings.approval.timeout_s,
    )


def _state(ground: Ground, refs: Refs) -> _State:
    settings, clock = ground.settings, ground.clock
    seen = observing(refs.events, ground.home, settings.observe, ground.registry, clock)
    return _State(
        seen=seen,
        journal=Journal(ground.home.audit, clock=clock, sync=settings.audit.sync),
        sessions=SessionTable(clock=clock, limit=settings.limits.sessions, forgotten=session_news(seen.news)),
        waiting=Waiting(settings.limits.in_flight, clock),
        grants=Grants(ground.home.grants, clock),
        programs=_programs(ground),
        tokens=StateTokens(settings.token, clock),
        sign=Sign(),
        stand=Stand(clock, settings.xfer),
    )


def _makers(ground: Ground, refs: Refs, state: _State, context_for: ContextFor) -> tuple[Maker, ...]:
    """What makes each actor, now and after each death, in the order of ``ORDER``."""
    news = state.seen.news
    return (
        state.seen.make,
        partial(AuditWriter, journal=state.journal, clock=ground.clock, written=news.written),
        _jobs(ground, refs, news),
        partial(Gate, waiting=state.waiting, grants=state.grants, news=news),
        partial(Fetcher, programs=state.programs, audit_writer=refs.audit),
        _tunnel(ground, refs, state.sign),
        _xfer(ground, refs, state.sign, state.stand),
        _executor(ground, refs, context_for, state.tokens, state.grants),
        partial(Sessions, table=state.sessions, audit_writer=refs.audit, run_calls=refs.executor, news=news),
    )


def _context_for(ground: Ground, refs: Refs) -> ContextFor:
    shares = xfer.Port(refs.xfer, ground.clock)
    return contexts(ground.settings, ground.home.root, ground.clock, JobsPort(refs.jobs), shares)


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


def _jobs(ground: Ground, refs: Refs, news: Publisher) -> Callable[[Any], Jobs]:
    runs = jobs.runs_for(ground.home.root, ground.clock, limits_of(ground.settings), job_news(news))
    return partial(Jobs, runs=runs, finish=partial(_finish, refs))


def _finish(refs: Refs, ticket: Ticket, result: Result, *, ended: str | None = None) -> None:
    # Our tickets are our calls: the executor made them.
    audit.finish(refs.audit, cast("Call", ticket), result, ended=ended)


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
    ground: Ground, refs: Refs, context_for: ContextFor, tokens: StateTokens, grants: Grants
) -> Callable[[Mailbox], Executor]:
    around = Surroundings(
        registry=ground.registry,
        approval=ground.settings.approval,
        grants=grants,
        context_for=context_for,
        audit_writer=refs.audit,
        gate=refs.gate,
        jobs=refs.jobs,
        interviews=Interviews(tokens, partial(executor.cancel, refs.executor)),
        desk=Desk(ground.library),
    )
    pool = Pool(clock=ground.clock, run_calls=refs.executor)
    return partial(Executor, running=Running(), pool=pool, around=around)
