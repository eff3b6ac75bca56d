"""Whose event is looked at first: callers', then strangers', then of those who were refused, and newcomers' last.

A peer is a stranger until a request of it has shown the token. However many of them come, they have half of the time,
and nobody with the token waits for more than a few of them. Who has just come waits for nobody who was refused already
and goes on talking.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from a2mcp.http.server.channel import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2mcp.http.server.poller import Poller

STRANGERS_S: Final = 0.005
"""For strangers, before callers are looked at again; longer where callers take longer."""


class Precedence:
    """The order of one round of the loop.

    Args:
        here: who there is, by descriptor.
        poller: tells who is ready; an event that was not looked at is told again.
        listener: who takes newcomers in. Last of all: one of them may be given the descriptor of a connection whose
            event was not looked at, and they may only come when the strangers who are there have had their turn.
        look_after: does what somebody is ready for.
        meanwhile: does what else callers wait for.
    """

    def __init__(
        self,
        here: Mapping[int, Any],
        poller: Poller,
        *,
        listener: Any,
        look_after: Callable[[Any, int], None],
        meanwhile: Callable[[], None],
    ) -> None:
        self._here = here
        self._poller = poller
        self._listener = listener
        self._look_after = look_after
        self._meanwhile = meanwhile

    def take(self, ready: list[tuple[int, int]]) -> None:
        """Look at those who are ready, and at callers again and again meanwhile."""
        strangers, newcomers = self._look_after_callers(ready)
        if strangers:
            self._look_after_strangers(strangers)
        if newcomers:
            self._look_after(self._listener, newcomers)

    def _look_after_callers(self, ready: list[tuple[int, int]]) -> tuple[list[tuple[Channel, int]], int]:
        """Look at all but strangers, which are handed back, and newcomers, whose event is, or 0."""
        strangers, newcomers = [], 0
        for fd, event in ready:
            somebody = self._here.get(fd)
            if somebody is self._listener:
                newcomers = event
            elif isinstance(somebody, Channel) and not somebody.known:
                strangers.append((somebody, event))
            elif somebody is not None:
                self._look_after(somebody, event)
        return strangers, newcomers

    def _look_after_strangers(self, ready: list[tuple[Channel, int]]) -> None:
        ready.sort(key=lambda each: each[0].lingering_since > 0.0)
        ends = time.monotonic() + STRANGERS_S
        for stranger, event in ready:
            if time.monotonic() > ends:
                if stranger.lingering_since:
                    break  # From here on all were refused. Their events are told again.
                began = time.monotonic()
                self._look_after_callers(self._poller.wait(0.0))
                self._meanwhile()
                now = time.monotonic()
                # As long as callers took: else slow ones would make the round, and the wait of newcomers, endless.
                ends = now + max(STRANGERS_S, now - began)
            # What was done for others may have closed it.
            if stranger.connected:
                self._look_after(stranger, event)
