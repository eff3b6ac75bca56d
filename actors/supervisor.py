"""The supervisor: starts actors in an order, stops them in the reverse one, and restarts those that die.

Pykka has none of this. A child that dies is started again on the same mailbox, so that nobody's ref goes stale and no
waiting message is lost; one that dies too often means that restarting does not help, and then the daemon ends loudly.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from actors.kit import Actor, halt, launch
from actors.ref import Mailbox, Message, Ping, Ref

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.clock import Clock

RESTARTS: Final = 5
WITHIN_S: Final = 30.0
"""More than ``RESTARTS`` in this many seconds, over all children, and the supervisor gives up."""
START_S: Final = 5.0
STOP_S: Final = 5.0

logger = logging.getLogger("a2mcp.supervisor")


class Died(Message, frozen=True):
    """Told by a child's last breath."""

    name: str


class Look(Message, frozen=True):
    """See whether a child is gone that could not say so."""


class Child(msgspec.Struct, frozen=True):
    """How to make an actor, now and after each death; its state is made outside and outlives it."""

    mailbox: Mailbox
    make: Callable[[Any], Actor[Any]]
    """Given the mailbox, whose type it knows."""

    @property
    def name(self) -> str:
        """The actor's role, which is also the name of its thread."""
        return self.mailbox.name


class Supervisor(Actor[Died | Look]):
    """Owns the order of starting and stopping, and the restarts."""

    MAILBOX: ClassVar[int] = 1024

    def __init__(self, mailbox: Mailbox, *, clock: Clock, give_up: Callable[[str], None]) -> None:
        super().__init__(mailbox)
        self._clock = clock
        self._give_up = give_up
        self._children: dict[str, Child] = {}
        self._actors: dict[str, Actor[Any]] = {}
        self._restarts: deque[float] = deque()
        self._stopping = False
        self.restarts = 0
        """How many there have been."""

    def start_children(self, children: list[Child]) -> None:
        """Start them in this order, each only when the one before it answers. Called before anything is told."""
        self.on_death = lambda _cause: self.end("Supervisor died")
        launch(self)
        for child in children:
            self._children[child.name] = child
            self._start(child)
            Ref[Any](child.mailbox).ask(Ping(), timeout=START_S)

    def stop_children(self) -> None:
        """Stop them in the reverse order, each after what its mailbox holds."""
        self._stopping = True
        halt(self, timeout=STOP_S)
        for actor in reversed(self._actors.values()):
            if not actor.alive():
                _tidy_up(actor)
            if not halt(actor, timeout=STOP_S):
                logger.error("[a2mcp] %s did not stop in %d s", actor.mailbox.name, STOP_S)

    def receive(self, message: Died | Look) -> None:
        """Restart who is gone."""
        names = [message.name] if isinstance(message, Died) else list(self._actors)
        for name in names:
            if not self._stopping and not self._actors[name].alive():
                self._restart(self._children[name])

    def gone(self) -> list[str]:
        """Who is not there now. May be asked from any thread."""
        return [name for name, actor in list(self._actors.items()) if not actor.alive()]

    def end(self, reason: str) -> None:
        """Give up, once: from now on nobody is restarted."""
        if not self._stopping:
            self._stopping = True
            self._give_up(reason)

    def _restart(self, child: Child) -> None:
        now = self._clock.monotonic()
        self._restarts.append(now)
        while self._restarts[0] < now - WITHIN_S:
            self._restarts.popleft()
        if len(self._restarts) > RESTARTS:
            self.end(f"actors died {len(self._restarts)} times in {WITHIN_S:.0f} s, {child.name} the last of them")
            return
        self.restarts += 1
        logger.error("[a2mcp] %s died and is started again", child.name)
        self._start(child)

    def _start(self, child: Child) -> None:
        actor = child.make(child.mailbox)
        actor.on_death = lambda _cause: self.mailbox.put(Died(child.name))
        self._actors[child.name] = actor
        launch(actor)


def _tidy_up(actor: Actor[Any]) -> None:
    """Do for an actor that died, and was not replaced, what it would have done at its end."""
    try:
        actor.on_stop()
    except Exception:
        logger.exception("[a2mcp] internal error: %s left something behind", actor.mailbox.name)


def look(supervisor: Supervisor) -> None:
    """Have the children looked at. Called once a second by the loop."""
    if not supervisor.alive():
        supervisor.end("Supervisor is gone")
    elif not supervisor.mailbox.depth():
        supervisor.mailbox.put(Look())
