"""Whose event is looked at first: callers', then strangers', a few at a time, and last of those who were refused.

A peer is a stranger until a request of it has shown the token. However many of them come, nobody with the token waits
for more than a few; and who has just come waits for nobody who was refused already and goes on talking.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from a2mcp.http.server.channel import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2mcp.http.server.poller import Poller

STRANGERS_S: Final = 0.005
"""For strangers, before callers are looked at again."""


class Turns:
    """The order of one round of the loop.

    Args:
        here: who there is, by descriptor.
        poller: tells who is ready; an event that was not looked at is told again.
        look_after: does what somebody is ready for.
    """

    def __init__(self, here: Mapping[int, Any], poller: Poller, look_after: Callable[[Any, int], None]) -> None:
        self._here = here
        self._poller = poller
        self._look_after = look_after

    def take(self, ready: list[tuple[int, int]]) -> None:
        """Look at everybody who is ready, and at callers again and again meanwhile."""
        strangers = self._callers(ready)
        strangers.sort(key=lambda each: each[0].lingering_since > 0.0)
        ends = time.monotonic() + STRANGERS_S
        for stranger, event in strangers:
            if time.monotonic() > ends:
                if stranger.lingering_since:
                    break
                self._callers(self._poller.wait(0.0))
                ends = time.monotonic() + STRANGERS_S
            if stranger.connected:
                self._look_after(stranger, event)

    def _callers(self, ready: list[tuple[int, int]]) -> list[tuple[Channel, int]]:
        """Look at all but strangers; those are left over."""
        left = []
        for fd, event in ready:
            somebody = self._here.get(fd)
            if isinstance(somebody, Channel) and not somebody.known:
                left.append((somebody, event))
            elif somebody is not None:
                self._look_after(somebody, event)
        return left
