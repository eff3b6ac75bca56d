"""Whose turn it is: the connections that have a request to be served, and those that wait for something else now.

Anybody may put a connection on; the loop alone takes them off.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2mcp.http.server.channel import Channel

FURTHER_S: Final = 0.01
"""For requests that were sent ahead, before the others are looked at again."""


class Scheduler:
    """The three lists of a loop.

    Args:
        serve: answers the request at the head of a channel's queue.
    """

    def __init__(self, serve: Callable[[Channel], None]) -> None:
        self._serve = serve
        self.ready: deque[Channel] = deque()
        """Those whose first request has come."""
        self.further: deque[Channel] = deque()
        """Those with requests behind the one that was just answered. They wait until the others have been read."""
        self.changed: deque[Channel] = deque()
        """Those that are to be asked anew what they wait for."""

    @property
    def busy(self) -> bool:
        """Whether somebody's turn has come, so that there is no time to wait for more."""
        return bool(self.ready or self.further or self.changed)

    def serve_ready(self) -> None:
        """Serve everybody whose first request has come."""
        while self.ready:
            self._serve(self.ready.popleft())

    def serve_further(self) -> None:
        """Serve one more request of each, but only for a while: nobody is to wait for what somebody else sent ahead."""
        if not self.further:
            return
        ends = time.monotonic() + FURTHER_S
        for _ in range(len(self.further)):
            self._serve(self.further.popleft())
            if time.monotonic() > ends:
                break

    def take_changed(self) -> Iterator[Channel]:
        """Those that have changed by now; who changes meanwhile has the next round."""
        for _ in range(len(self.changed)):
            yield self.changed.popleft()
