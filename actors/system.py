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
from a2mcp.policy.waiting import Waiting
from a2mcp.session.table import SessionTable
from a2mcp.tools.context import Context, JobsPort, Limits
from a2mcp.tools.registry import Registry
from actors import audit, executor, gate, jobs, sessions
from actors.audit import AuditWriter
from actors.executor import Executor, Running, Surroundings
from actors.front import Front
from actors.gate import Gate
from actors.jobs import Jobs
from actors.kit import Actor
from actors.pool import Pool
from actors.ref import Ref
from actors.sessions import Sessions
from actors.supervisor import Child, Supervisor, look

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.clock import Clock
    from a2mcp.tools.call import Call
    from a2mcp.tools.context import Ticket
    from a2mcp.tools.result import Result
    from actors.ref import Mailbox

GOING_DOWN: Final = "The daemon stopped before this call had ended."
KILL_AFTER_S: Final = 2.0
ORDER: Final[tuple[type[Actor[Any]], ...]] = (AuditWriter, Jobs, Gate, Executor, Sessions)
"""Of starting; the reverse of stopping. Whoever is told things comes before whoever tells them."""


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What the actors stand on: everything that is decided before the first of them starts."""

    home: Home
    settings: Settings
    registry: Registry
    clock: Clock
    give_up: Callable[[str], None]
    """Called when restarting an actor does not help."""


class System(msgspec.Struct, frozen=True):
    """The running actors."""

    front: Front
    audit: Ref[audit.Command]
    sessions: Ref[sessions.Command]
    executor: Ref[executor.Command]
    gate: Ref[gate.Command]
    jobs: Ref[jobs.JobsMessage]
    supervisor: Supervisor

    def tick(self) -> None:
        """Look after what got lost. Called once a second by the server's loop."""
        self.front.sweep()
        look(self.supervisor)

    def abort(self, *, grace_s: float = KILL_AFTER_S) -> None:
        """End what still runs, with its record: commands by signal, calls with an error."""
        jobs.stop_all(self.jobs, grace_s=grace_s)
        executor.abort(self.executor, GOING_DOWN)

    def commands_run(self) -> bool:
        """Whether a command that was told to end has not ended yet. Waits for the actor's answer."""
        return jobs.running(self.jobs) > 0

    def stop(self) -> None:
        """Stop the actors, the last started first; each handles what its mailbox holds."""
        self.supervisor.stop_children()


def start(ground: Ground) -> System:
    """Start every actor; the system is ready when this returns."""
    boxes: dict[type[Actor[Any]], Mailbox] = {kind: kind.mailbox_for(kind.__name__) for kind in ORDER}
    system = _system(ground, boxes)
    makers: tuple[Callable[[Any], Actor[Any]], ...] = (
        _audit_writer(ground),
        _jobs(ground, system),
        _gate(ground),
        _executor(ground, system),
        _sessions(ground, system),
    )
    system.supervisor.start_children([Child(box, make) for box, make in zip(boxes.values(), makers, strict=True)])
    return system


def _system(ground: Ground, boxes: dict[type[Actor[Any]], Mailbox]) -> System:
    return System(
        front=Front(
            session_table=Ref(boxes[Sessions]),
            run_calls=Ref(boxes[Executor]),
            registry=ground.registry,
            in_flight=ground.settings.limits.in_flight,
            clock=ground.clock,
        ),
        audit=Ref(boxes[AuditWriter]),
        jobs=Ref(boxes[Jobs]),
        gate=Ref(boxes[Gate]),
        executor=Ref(boxes[Executor]),
        sessions=Ref(boxes[Sessions]),
        supervisor=Supervisor(Supervisor.mailbox_for("Supervisor"), clock=ground.clock, give_up=ground.give_up),
    )


def _audit_writer(ground: Ground) -> Callable[[Mailbox], AuditWriter]:
    journal = Journal(ground.home.audit, clock=ground.clock, sync=ground.settings.audit.sync)
    return partial(AuditWriter, journal=journal, clock=ground.clock)


def _jobs(ground: Ground, system: System) -> Callable[[Any], Jobs]:
    runs = jobs.runs_for(ground.home.root, ground.clock, _limits(ground))

    def finish(ticket: Ticket, result: Result) -> None:
        # Our tickets are our calls: the executor made them.
        audit.finish(system.audit, cast("Call", ticket), result)
        executor.ended(system.executor, ticket.call_id)

    return partial(Jobs, runs=runs, finish=finish)


def _gate(ground: Ground) -> Callable[[Mailbox], Gate]:
    return partial(Gate, waiting=Waiting(ground.settings.limits.in_flight, ground.clock))


def _executor(ground: Ground, system: System) -> Callable[[Mailbox], Executor]:
    around = Surroundings(
        registry=ground.registry,
        approval=ground.settings.approval,
        context_for=_contexts(ground, jobs.Port(system.jobs)),
        audit_writer=system.audit,
        gate=system.gate,
    )
    pool = Pool(clock=ground.clock, run_calls=system.executor)
    return partial(Executor, running=Running(), pool=pool, around=around)


def _sessions(ground: Ground, system: System) -> Callable[[Mailbox], Sessions]:
    table = SessionTable(clock=ground.clock, limit=ground.settings.limits.sessions)
    return partial(Sessions, table=table, audit_writer=system.audit, run_calls=system.executor)


def _limits(ground: Ground) -> Limits:
    limits = ground.settings.limits
    return Limits(output_bytes=limits.output_bytes, job_bytes=limits.job_bytes)


def _contexts(ground: Ground, port: JobsPort) -> Callable[[Call], Context]:
    """Make what builds the context of each call."""
    limits = _limits(ground)
    cwd = ground.settings.cwd or Path(os.getcwd())  # noqa: PTH109  # Path.cwd() imports more at every start.
    home, clock = ground.home.root, ground.clock

    def context_for(call: Call) -> Context:
        return Context(ticket=call, cwd=cwd, home=home, limits=limits, jobs=port, clock=clock, cancelled=call.has_ended)

    return context_for
