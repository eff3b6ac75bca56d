"""The tunnel as it stands: closed, being opened, open, being closed; and what each step changes.

Plain state, moved by whoever owns it. What a step does to the world is behind ``World``: so every order of events can
be tried without a process or a thread. ``Sign`` is what everybody else reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec

from a2mcp.clock import iso
from a2mcp.errors import CannotTunnel
from a2mcp.tunnel.providers import Wish, provider_of

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.clock import Clock
    from a2mcp.tunnel.providers import Launch
    from a2mcp.types import JsonObject

EARLY: Final = "stopped before it was open"
State = Literal["closed", "obtaining", "opening", "open", "closing"]


class TunnelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How the tunnel is doing."""

    state: State = "closed"
    provider: str | None = None
    url: str | None = None
    """``https://`` and the host name, while it is open."""
    pid: int | None = None
    """The process that keeps it open."""
    since: str | None = None
    """When it was opened."""
    error: str | None = None
    """Why it could not be opened, or was lost."""


class Sign:
    """The facts of now, to be read from any thread without asking anybody."""

    def __init__(self) -> None:
        self.facts = TunnelFacts()

    @property
    def url(self) -> str | None:
        """The public address of this daemon; None while there is none."""
        return self.facts.url


class World(Protocol):
    """What the tunnel does to the world. Each of these returns at once; what comes of it is told later."""

    def obtain(self, program: str, attempt: int) -> None:
        """Find or fetch a program; told to ``obtained``."""
        ...

    def open(self, program: Path, launch: Launch, attempt: int) -> None:
        """Start the program; told to ``named`` and ``ended``."""
        ...

    def close(self) -> None:
        """End the program; told to ``ended``."""
        ...

    def record(self, args: JsonObject, attempt: int) -> None:
        """Write an audit record; told to ``recorded``."""
        ...

    def answer_to(self, hostname: str | None) -> None:
        """Let requests come under this name, and under no other name of a tunnel."""
        ...


class Passage:
    """The one tunnel of a daemon.

    Args:
        origin: our own address, ``http://127.0.0.1:4801``.
        world: what happens outside.
        sign: kept up to date.
        clock: for the moment it opens.
    """

    def __init__(self, *, origin: str, world: World, sign: Sign, clock: Clock) -> None:
        self._origin = origin
        self._port = int(origin.rpartition(":")[2])
        self._world = world
        self._sign = sign
        self._clock = clock
        self._attempt = 0
        self._launch: Launch | None = None
        self._hostname: str | None = None
        self._outcome: str | None = None
        """Once the program has ended: why, or empty when it was asked to."""
        self._unrecorded = 0

    @property
    def facts(self) -> TunnelFacts:
        """How it is doing."""
        return self._sign.facts

    def start(self, wish: Wish) -> TunnelFacts:
        """Begin to open it; one that is open, or opening, is left as it is.

        Raises:
            CannotTunnel: the wish cannot be met, or the tunnel is being closed.
        """
        if self.facts.state == "closing":
            raise CannotTunnel("The tunnel is being closed.", hint="Try again in a moment.")
        if self.facts.state != "closed":
            return self.facts
        provider = provider_of(wish)
        self._launch = provider.launch(wish, self._origin)
        self._attempt += 1
        self._hostname = self._outcome = None
        self._world.obtain(provider.program, self._attempt)
        self._sign.facts = TunnelFacts(state="obtaining", provider=wish.provider)
        return self.facts

    def stop(self) -> TunnelFacts:
        """Begin to close it. Its name is not ours from this moment on."""
        match self.facts.state:
            case "obtaining":
                self._end(EARLY)
            case "opening" | "open":
                self._world.answer_to(None)
                self._show(state="closing", url=None)
                self._world.close()
        return self.facts

    def obtained(self, attempt: int, program: Path) -> None:
        """Start the program that was found."""
        if attempt == self._attempt and self.facts.state == "obtaining" and self._launch is not None:
            self._show(state="opening")
            self._world.open(program, self._launch, attempt)

    def not_obtained(self, attempt: int, reason: str) -> None:
        """Give up: there is no program."""
        if attempt == self._attempt and self.facts.state == "obtaining":
            self._end(reason)

    def named(self, attempt: int, hostname: str, pid: int) -> None:
        """Record that it is up; what is not recorded does not happen."""
        if attempt == self._attempt and self.facts.state == "opening" and self._hostname is None:
            self._hostname = hostname
            self._show(pid=pid)
            self._record("start")

    def ended(self, attempt: int, reason: str) -> None:
        """Take it down: the program is gone."""
        if attempt == self._attempt and self._outcome is None:
            self._world.answer_to(None)
            self._end(reason or ("" if self._hostname is not None else EARLY))

    def leave(self) -> None:
        """Record the end that nobody will tell any more: the daemon goes."""
        if self.facts.state != "closed":
            self.ended(self._attempt, "")

    def recorded(self, attempt: int) -> None:
        """Go on, now that the record is written."""
        if attempt != self._attempt:
            return
        self._unrecorded -= 1
        if self._outcome is not None and not self._unrecorded:
            self._sign.facts = TunnelFacts(error=self._outcome or None)
        elif self.facts.state == "opening" and self._hostname is not None:
            self._world.answer_to(self._hostname)
            self._show(state="open", url=self._url, since=iso(self._clock.now()))

    @property
    def _url(self) -> str:
        return f"https://{self._hostname}"

    def _end(self, reason: str) -> None:
        """Record the end of what was recorded as open, or that it could not be opened."""
        self._outcome = reason
        self._show(state="closing", url=None)
        self._record("stop" if self._hostname is not None else "start", reason)

    def _record(self, action: str, error: str = "") -> None:
        args: JsonObject = {"action": action}
        if self._hostname is not None:
            args["url"] = self._url
        args["port"] = self._port
        if error:
            args["error"] = error
        self._unrecorded += 1
        self._world.record(args, self._attempt)

    def _show(self, **changes: object) -> None:
        self._sign.facts = msgspec.structs.replace(self.facts, **changes)
