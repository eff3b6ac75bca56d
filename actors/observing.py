"""What lets the daemon be observed, put together: the chronicle and whoever has news, and what others may look at.

Made before the actors start, because it outlives each of them.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp import __version__
from a2mcp.audit.record import summarise
from a2mcp.http.facts import Gauges
from a2mcp.masking import mask
from a2mcp.observe.chronicle import Chronicle
from a2mcp.observe.event import SESSION, WARNING, as_args
from a2mcp.observe.store import Store
from a2mcp.observe.tally import Tally
from actors import events
from actors.events import Events, Publisher, State
from actors.sightings import Sightings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from a2mcp.audit.journal import Journal
    from a2mcp.clock import Clock
    from a2mcp.config.paths import Home
    from a2mcp.config.schema import ObserveSettings
    from a2mcp.host.runs import Runs
    from a2mcp.http.events import Asked
    from a2mcp.http.server.connections import Connections
    from a2mcp.inference.switch import Switch
    from a2mcp.inference.transcript import AgentFacts
    from a2mcp.observe.event import Event
    from a2mcp.observe.watching import Outlet
    from a2mcp.policy.waiting import Waiting
    from a2mcp.protocol.exchange import Reply
    from a2mcp.protocol.response import Response
    from a2mcp.session.table import SessionTable
    from a2mcp.tools.registry import Registry
    from a2mcp.types import SessionId
    from a2mcp.xfer.transfers import Transfers
    from actors.front import Front
    from actors.ref import Mailbox, Ref
    from actors.sightings import Trace
    from actors.supervisor import Supervisor

_DISPLAYS: Final = ("WAYLAND_DISPLAY", "DISPLAY")


class Observing(msgspec.Struct, frozen=True):
    """The events actor's maker, its state, and the way to it for whoever has news."""

    make: Callable[[Mailbox], Events]
    state: State
    news: Publisher


def observing(
    ref: Ref[events.Command], home: Home, settings: ObserveSettings, registry: Registry, clock: Clock
) -> Observing:
    """Put it together. Touches no file: the store is opened at the first event."""
    tally = Tally(lambda name: registry.find(name) is not None)
    chronicle = Chronicle(Store(home.events, clock=clock, keep=settings.events), tally, clock)
    state = State(chronicle, sightings=Sightings(_trace(settings)))
    notify = _notify(settings, clock)
    return Observing(partial(Events, state=state, notify=notify), state, Publisher(ref, state.lost, clock))


def _trace(settings: ObserveSettings) -> Trace | None:
    if not settings.traces:
        return None
    from a2mcp.observe import tracing  # noqa: PLC0415 - for those who want it

    return tracing.tracer()


def _notify(settings: ObserveSettings, clock: Clock) -> Callable[[Event], None] | None:
    """What calls for attention; None where nobody would see it."""
    if settings.notify == "off" or (settings.notify == "auto" and not any(map(os.environ.get, _DISPLAYS))):
        return None
    from a2mcp.observe import desktop  # noqa: PLC0415 - for a session

    program = desktop.program(os.environ.get("PATH"))
    return None if program is None else desktop.Desktop(program, clock).notify


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """What actors own and anybody may ask the size of."""

    mailboxes: Sequence[Mailbox]
    journal: Journal
    sessions: SessionTable
    waiting: Waiting[Any]
    runs: Runs
    connections: Connections
    transfers: Transfers
    switch: Switch
    agent: Callable[[], AgentFacts]


class Lookout:
    """What may be looked at without asking anybody: a ``Probe``, and the way in for watchers.

    It reads sizes of what actors own, which the interpreter makes atomic; nothing is decided by them.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # One argument for each thing that is looked at.
        self,
        ref: Ref[events.Command],
        state: State,
        supervisor: Supervisor,
        front: Front,
        sizes: Sizes,
        clock: Clock,
    ) -> None:
        self._ref = ref
        self._state = state
        self._sizes = sizes
        self._supervisor = supervisor
        self._front = front
        self._clock = clock
        self._started = clock.monotonic()

    def not_ready(self) -> str | None:
        """Why no calls are taken, in a word; None when they are."""
        if self._front.stopping:
            return "stopping"
        return "restarting" if self._supervisor.gone() else None

    def scrape(self, reply: Reply, write: Callable[[Tally, Gauges], Response]) -> None:
        """Complete a reply with the counts; the events actor does, so that they all are of one moment."""
        events.scrape(self._ref, reply, lambda chronicle: write(chronicle.tally, self._gauges()))

    def watch(self, outlet: Outlet, asked: Asked) -> None:
        """Tell an outlet what happens until it has left."""
        events.watch(self._ref, outlet, asked.wanted, after=asked.after, history=asked.history)

    def tend(self, now: float) -> None:
        """Keep silent streams alive. Called once a second."""
        if self._state.chronicle.watchers:
            events.tend(self._ref, now)

    def _gauges(self) -> Gauges:
        depths = {mailbox.name: mailbox.depth() for mailbox in self._sizes.mailboxes}
        shared = self._sizes.transfers.bytes_moved()
        agent = self._sizes.agent()
        tokens = {"input": agent.total.input_tokens, "output": agent.total.output_tokens}
        plain = self._plain() | {
            "a2mcp_agents_running": agent.running,
            "a2mcp_agent_turns_total": agent.turns,
            "a2mcp_agent_requests_total": agent.total.requests,
        }
        return Gauges(version=__version__, mailboxes=depths, shared=shared, agent_tokens=tokens, plain=plain)

    def _plain(self) -> dict[str, float]:
        counts = self._sizes.journal.counts
        return {
            "a2mcp_uptime_seconds": self._clock.monotonic() - self._started,
            "a2mcp_calls_in_flight": self._front.calls_in_flight,
            "a2mcp_approvals_waiting": len(self._sizes.waiting),
            "a2mcp_sessions": self._sizes.sessions.size,
            "a2mcp_commands_running": self._sizes.runs.running(),
            "a2mcp_connections": len(self._sizes.connections),
            "a2mcp_connections_unauthenticated": self._sizes.connections.strangers,
            "a2mcp_connections_sent_away_total": self._sizes.connections.sent_away,
            "a2mcp_share_transfers": len(self._sizes.transfers),
            "a2mcp_actor_restarts_total": self._supervisor.restarts,
            "a2mcp_audit_records_total": counts.written,
            "a2mcp_audit_failures_total": counts.failures,
            "a2mcp_events_not_kept_total": self._state.chronicle.store.failures,
            "a2mcp_inference_allowed": self._sizes.switch.facts.enabled,
            "a2mcp_inference_denied_total": self._sizes.switch.facts.denied,
            "a2mcp_watchers": self._state.chronicle.watchers,
        }


class Warnings(logging.Handler):
    """Lets watchers see what the daemon warns of."""

    def __init__(self, news: Publisher) -> None:
        super().__init__(logging.WARNING)
        self._news = news

    def emit(self, record: logging.LogRecord) -> None:
        """Pass one on; never raises, as a handler must not."""
        try:
            said = record.getMessage().removeprefix("[a2mcp] ").removeprefix("warning: ")
        except (TypeError, ValueError):
            self.handleError(record)  # The message does not fit its arguments.
            return
        self._news(WARNING, status=record.levelname.lower(), args=as_args(text=mask(said)[:1000]))


def session_news(news: Publisher) -> Callable[[SessionId, str], None]:
    """Make what is told of each session that ended without anybody ending it."""
    return lambda session, why: news(SESSION, status="ended", session=session, args=as_args(why=why))


def job_news(news: Publisher) -> Callable[[Any], None]:
    """Make what is told how a job stands whenever that is written down."""

    def told(record: Any) -> None:
        facts: Mapping[str, Any] = {
            "id": record.id,
            "command": record.command,
            "pid": record.pid,
            "exit_code": record.exit_code,
            "output_bytes": record.output_bytes,
            "ending": record.ending,
        }
        news(
            "job." + record.state,
            tool="bash",
            status=record.state,
            seconds=record.duration_s,
            args=summarise(as_args(**facts)).args,
        )

    return told
