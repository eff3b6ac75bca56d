"""The tunnel's actor: the one that opens and closes it, so that two starts at once make one child.

A thin shell: what a step means is in ``a2mcp/tunnel/passage.py``, what the program does in its keeper, which tells this
actor. Only the operator's channel comes here; whoever wants to know the public address reads the sign.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, assert_never

from a2mcp.auth.origin import AllowedHosts
from a2mcp.errors import A2mcpError
from a2mcp.tunnel.passage import Passage, Sign, TunnelFacts
from actors import audit, fetcher
from actors.kit import Actor
from actors.ref import Ask, Mailbox, Message, Ref

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.clock import Clock
    from a2mcp.obtain.programs import Found
    from a2mcp.tunnel.keeper import Ended, Keeper, Limits, Named
    from a2mcp.tunnel.providers import Launch, Wish
    from a2mcp.types import JsonObject


GONE_S: Final = 3.0
"""For a program to be gone at the end of the daemon: its grace, and a second."""


class Start(Ask[TunnelFacts], frozen=True):
    """The operator wants it open."""

    wish: Wish


class Stop(Ask[TunnelFacts], frozen=True):
    """The operator wants it closed."""


class Close(Message, frozen=True):
    """The daemon goes down."""

    at_once: bool


class Obtained(Message, frozen=True):
    """Told by the fetcher."""

    attempt: int
    outcome: Found | A2mcpError


class Told(Message, frozen=True):
    """Told by the keeper."""

    attempt: int
    event: Named | Ended


class Recorded(Message, frozen=True):
    """Told by the audit writer: the last record of this attempt is written."""

    attempt: int


Command = Start | Stop | Close | Obtained | Told | Recorded


class Line:
    """The tunnel and its ways into the world. Outlives the actor: a restart leaves the tunnel open.

    Args:
        origin: our own address.
        hosts: the names we answer to.
        names: those of the settings, which stay whatever the tunnel does; the first is the address we listen on.
        sign: what everybody else reads.
        clock: for limits and moments.
        refs: the ways to the tunnel's own actor, the fetcher and the audit writer.
        limits: how long the program may take; None for the usual.
    """

    def __init__(  # noqa: PLR0913  # One for each thing that a tunnel touches.
        self,
        *,
        origin: str,
        hosts: AllowedHosts,
        names: tuple[str, ...],
        sign: Sign,
        clock: Clock,
        refs: tuple[Ref[Command], Ref[fetcher.Fetch], Ref[audit.Command]],
        limits: Limits | None = None,
    ) -> None:
        self._hosts = hosts
        self._names = names
        self._clock = clock
        self._me, self._fetcher, self._audit = refs
        self._limits = limits
        self.keeper: Keeper | None = None
        self.passage = Passage(origin=origin, world=self, sign=sign, clock=clock)

    def obtain(self, program: str, attempt: int) -> None:
        """Ask the fetcher."""
        fetcher.fetch(self._fetcher, program, then=self._me, message=partial(Obtained, attempt))

    def open(self, program: Path, launch: Launch, attempt: int) -> None:
        """Start the program under a keeper of its own."""
        from a2mcp.tunnel.keeper import Keeper  # noqa: PLC0415  # Most daemons never have a tunnel.

        def tell(event: Named | Ended) -> None:
            self._me.insist(Told(attempt, event))

        self.keeper = Keeper(program, launch, tell=tell, clock=self._clock, limits=self._limits)
        self.keeper.start()

    def close(self) -> None:
        """Ask the program to end."""
        if self.keeper is not None:
            self.keeper.stop()

    def record(self, args: JsonObject, attempt: int) -> None:
        """Tell the audit writer, who tells us."""
        audit.record(self._audit, "tunnel", None, args, then=self._me, message=Recorded(attempt))

    def answer_to(self, hostname: str | None) -> None:
        """Allow the name in ``Host`` and ``Origin``, or none."""
        listening, *extra = self._names
        self._hosts.replace(listening, [*extra, hostname] if hostname is not None else extra)


class Tunnel(Actor[Command]):
    """Owns the tunnel."""

    MAILBOX: ClassVar[int] = 1024

    def __init__(self, mailbox: Mailbox, *, line: Line) -> None:
        super().__init__(mailbox)
        self._line = line

    def receive(self, message: Command) -> TunnelFacts | None:
        """Take one step."""
        passage = self._line.passage
        match message:
            case Start(wish=wish):
                return passage.start(wish)
            case Stop():
                return passage.stop()
            case Close(at_once=at_once):
                self._close(at_once=at_once)
            case Obtained():
                self._obtained(message)
            case Told():
                self._told(message)
            case Recorded(attempt=attempt):
                passage.recorded(attempt)
            case _:
                assert_never(message)
        return None

    def on_stop(self) -> None:
        """See the program gone, and its end on record."""
        self._close(at_once=False)
        if self._line.keeper is not None:
            self._line.keeper.wait(GONE_S)
        self._line.passage.leave()

    def _close(self, *, at_once: bool) -> None:
        self._line.passage.stop()
        if at_once and self._line.keeper is not None:
            self._line.keeper.stop(at_once=True)

    def _obtained(self, message: Obtained) -> None:
        if isinstance(message.outcome, A2mcpError):
            self._line.passage.not_obtained(message.attempt, str(message.outcome))
        else:
            self._line.passage.obtained(message.attempt, message.outcome.path)

    def _told(self, message: Told) -> None:
        from a2mcp.tunnel.keeper import Ended  # noqa: PLC0415  # It is there by now.

        event, passage = message.event, self._line.passage
        if isinstance(event, Ended):
            passage.ended(message.attempt, event.reason)
        else:
            passage.named(message.attempt, event.hostname, event.pid)


def start(tunnel: Ref[Command], wish: Wish) -> TunnelFacts:
    """Begin to open it; how it goes on is on the sign.

    Raises:
        CannotTunnel: the wish cannot be met.
    """
    return tunnel.ask(Start(wish), timeout=5)


def stop(tunnel: Ref[Command]) -> TunnelFacts:
    """Begin to close it; when it is closed is on the sign."""
    return tunnel.ask(Stop(), timeout=5)


def close(tunnel: Ref[Command], *, at_once: bool) -> None:
    """Close it because the daemon goes down."""
    tunnel.insist(Close(at_once))
