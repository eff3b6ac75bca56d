"""What the operator may ask, answered by the actors.

Whoever asks waits for the actors: a thread of the operator's channel, or a worker that reads a resource, not the loop.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from typing import TYPE_CHECKING

import msgspec

from a2mcp import __version__, masking
from a2mcp.auth.origin import host_name, is_loopback
from a2mcp.auth.visit import CODE_S
from a2mcp.clock import iso
from a2mcp.config import endpoint as endpoints
from a2mcp.config import token as tokens
from a2mcp.config.load import replace_token
from a2mcp.errors import CannotListen, UnusableFile
from a2mcp.http.facts import HostLlmFacts, Invitation, JobFacts
from a2mcp.http.ports import AuditFacts, Status
from actors import audit, executor, fetcher, gate, inference, jobs, sessions, tunnel
from actors.deskwork import Deskwork

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from a2mcp.auth.bearer import Bearer
    from a2mcp.auth.visit import Visits
    from a2mcp.clock import Clock
    from a2mcp.config.paths import Home
    from a2mcp.obtain.programs import ProgramFacts
    from a2mcp.tunnel.passage import TunnelFacts
    from a2mcp.tunnel.providers import Wish
    from a2mcp.types import JsonObject
    from actors.system import System

logger = logging.getLogger("a2mcp")


class Operator(Deskwork):
    """The operator's port to one running daemon.

    Args:
        system: the actors.
        bearer: the token in force.
        home: where settings and endpoint are kept.
        base: ``http://host:port``.
        origin: the same as this machine reaches it.
        visits: who may use the page.
        clock: for the time since the start.
        stop: asks the daemon to drain and exit.
    """

    def __init__(  # noqa: PLR0913  # One argument for each thing the operator can touch.
        self,
        *,
        system: System,
        bearer: Bearer,
        token: str,
        home: Home,
        base: str,
        origin: str,
        visits: Visits,
        clock: Clock,
        stop: Callable[[], None],
    ) -> None:
        super().__init__(system, home, origin, clock)
        self._visits = visits
        self._bearer = bearer
        self._token = token
        self._base = base
        self._stop = stop
        self._rotating = threading.Lock()
        self._unpublished = False
        self._started_at: datetime = clock.now()
        self._started = clock.monotonic()

    def status(self) -> Status:
        """Tell how the daemon is doing."""
        system = self._system.refs
        counts, last = audit.counts(system.audit), audit.last(system.audit)
        commands = jobs.counts(system.jobs)
        return Status(
            url=f"{self._base}/mcp",
            bridge_url=f"{self._base}/",
            pid=os.getpid(),
            version=__version__,
            started_at=iso(self._started_at),
            uptime_s=round(self._clock.monotonic() - self._started, 3),
            token_prefix=tokens.prefix(self._token),
            sessions=sessions.count(system.sessions),
            calls_in_flight=executor.running(system.executor),
            approvals_waiting=len(gate.waiting(system.gate)),
            jobs_running=commands.kept,
            orphans=commands.orphans,
            audit=AuditFacts(written=counts.written, failures=counts.failures, last=last.seq, hash=last.hash.decode()),
            tunnel=self._system.tunnel.facts,
            agent=self._system.agent_sessions.facts(),
            downloading=self._system.programs.downloading(),
            host_llm=self.host_llm(),
            stopping=self._system.front.stopping,
        )

    def facts(self) -> JsonObject:
        """The same for a caller: without anything of the token."""
        return {name: value for name, value in msgspec.to_builtins(self.status()).items() if name != "token_prefix"}

    def token(self) -> str:
        """Return the token in force."""
        return self._token

    def rotate(self) -> str:
        """Make, keep and return a new token; the old one is dead at once.

        The file comes first: a token that cannot be kept must not replace one that is.
        """
        token = tokens.generate()
        with self._rotating:  # The channel has two threads: the token in the file must be the one in force.
            masking.learn(token)
            replace_token(self._home.config, token)
            self._bearer.replace(token)
            self._token = token
            self._republish()
        self.record("rotate")
        return token

    def tend(self) -> None:
        """Write ``endpoint.json`` if it could not be written when it should have been. Called once a second."""
        if self._unpublished:
            with self._rotating:
                self._republish()

    def _republish(self) -> None:
        """Tell programs of a token that is in force already: what fails here must not look like no rotation."""
        try:
            self.publish()
        except UnusableFile as error:
            if not self._unpublished:
                logger.warning("[a2mcp] warning: %s It is written as soon as it can be.", error)
            self._unpublished = True
            with contextlib.suppress(OSError):  # A token that is dead helps nobody.
                self._home.endpoint.unlink(missing_ok=True)
        else:
            self._unpublished = False

    def publish(self) -> None:
        """Write ``endpoint.json``."""
        endpoints.publish(
            self._home.endpoint,
            endpoints.Endpoint(
                url=f"{self._base}/mcp",
                bridge_url=f"{self._base}/",
                token=self._token,
                pid=os.getpid(),
                version=__version__,
                started_at=iso(self._started_at),
            ),
        )

    def jobs(self) -> tuple[JobFacts, ...]:
        """List the commands that outlived their calls."""
        return tuple(
            JobFacts(
                id=record.id or "",
                command=record.command,
                state=record.state,
                pid=record.pid,
                processes=record.pids,
                started_at=record.started_at,
                exit_code=record.exit_code,
                output_bytes=record.output_bytes,
            )
            for record in jobs.records(self._system.refs.jobs)
        )

    def tunnel(self) -> TunnelFacts:
        """Tell how the tunnel is doing."""
        return self._system.tunnel.facts

    def open_tunnel(self, wish: Wish) -> TunnelFacts:
        """Begin to open the tunnel; one that is open is left as it is."""
        return tunnel.start(self._system.refs.tunnel, wish)

    def close_tunnel(self) -> TunnelFacts:
        """Begin to close the tunnel."""
        return tunnel.stop(self._system.refs.tunnel)

    def host_llm(self) -> HostLlmFacts:
        """Tell whether this host may ask models, and which it would."""
        models = self._system.models
        facts, chosen = models.switch.facts, models.registry.chosen()
        return HostLlmFacts(
            enabled=facts.enabled,
            denied=facts.denied,
            degraded=facts.degraded,
            model=chosen.ref if chosen is not None and chosen.usable else None,
        )

    def switch_host_llm(self, *, enabled: bool) -> HostLlmFacts:
        """Let this host ask models, or deny it; how that stands then.

        Raises:
            CannotDeny: it was not turned.
        """
        try:
            inference.switch_for_operator(self._system.refs.inference, enabled=enabled)
        finally:  # What was refused is on record, too.
            audit.settle(self._system.refs.audit)
        return self.host_llm()

    def programs(self) -> tuple[ProgramFacts, ...]:
        """Tell where the programs of others are, or how far a download is."""
        return self._system.programs.facts()

    def obtain(self, program: str) -> bool:
        """Begin to find or fetch a program; False when none has that name."""
        if program not in self._system.programs.names:
            return False
        self._system.programs.want(program)
        fetcher.fetch(self._system.refs.fetcher, program)
        return True

    def invite(self) -> Invitation:
        """Make a link to the operator's page.

        Raises:
            CannotListen: the page could not be reached.
        """
        if not is_loopback(host_name(self._origin.partition("//")[2]) or ""):
            raise CannotListen(
                "The operator's page answers on a loopback address only, and this daemon listens on none.",
                hint="Set 'host' to 127.0.0.1, or to 0.0.0.0 to be reached from elsewhere, too.",
            )
        self.record("page")
        # In the fragment, which no browser sends anywhere.
        return Invitation(url=f"{self._origin}/ui/#{self._visits.invite()}", valid_s=CODE_S)

    def stop(self) -> None:
        """Ask the daemon to drain and exit; returns at once."""
        self._stop()
