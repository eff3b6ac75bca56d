"""Who is connected, and who gives way: the oldest stranger to the next, and to anybody who uses a connection least.

A peer is a stranger until a request of it has shown the token. Strangers have connections of their own, so that they
cannot use up those of callers; the oldest one goes first, because whoever has a token shows it at once. Called in the
loop alone.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2mcp.http.server.channel import Channel

AT_ONCE: Final = 64
"""Connections that come, and that give way, together; in between, the others are served."""
LOOK_AGAIN_S: Final = 0.25
"""Between two looks."""


class Connections:
    """The connections of one server.

    Args:
        most: how many there may be.
        strangers: how many of them may be strangers'.
    """

    def __init__(self, most: int, strangers: int) -> None:
        self._most = most
        self._most_strangers = strangers
        self._here: dict[Channel, None] = {}
        self._strangers: dict[Channel, None] = {}
        self._look_at = 0.0
        self.at_once = max(1, min(AT_ONCE, strangers // 4))
        """How many may come before those there are looked at: each is to have shown the token before it must go."""
        self.sent_away = 0
        """Strangers who had to go."""

    def __len__(self) -> int:
        return len(self._here)

    @property
    def strangers(self) -> int:
        """How many of the connections have not shown the token. May be asked from any thread."""
        return len(self._strangers)

    @property
    def full(self) -> bool:
        """Whether there are as many as there may be."""
        return len(self._here) >= self._most

    def came(self, channel: Channel) -> Channel | None:
        """Take note of a new connection; the stranger who has to go because of it, who may be itself."""
        self._here[channel] = self._strangers[channel] = None
        if len(self._strangers) <= self._most_strangers:
            return None
        self.sent_away += 1
        # The first are the oldest. Whoever is being answered has been let in by other means than the token.
        return next((each for each in self._strangers if not each.requests), channel)

    def known(self, channel: Channel) -> None:
        """Take note that a connection has shown the token."""
        self._strangers.pop(channel, None)

    def left(self, channel: Channel) -> None:
        """Take note that a connection has ended."""
        self._here.pop(channel, None)
        self._strangers.pop(channel, None)

    def give_way(self) -> Iterable[Channel]:
        """The connections that are to be closed because all are taken; none when there is room or all are in use.

        Nobody waits for an answer on them: those that did nothing for longest go first. A client opens another.
        """
        if not self.full or (now := time.monotonic()) < self._look_at:
            return ()
        self._look_at = now + LOOK_AGAIN_S
        count = max(1, min(AT_ONCE, self._most // 8))
        unused = (channel for channel in self._here if not channel.in_use(now))
        return heapq.nsmallest(count, unused, key=lambda channel: channel.active_at)
