"""Where a request is served: in the loop, or on a thread for large bodies, whose decoding would hold up all others."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Final

from a2mcp.host import affinity, switchinterval

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.http.server.channel import Channel

INLINE_BYTES: Final = 64 * 1024
"""A body that is not larger is decoded in the loop."""


class Bodies:
    """Serves channels; those with large bodies on a thread of its own, which is started for the first of them.

    Args:
        serve: answers the request at the head of a channel's queue; never raises.
    """

    def __init__(self, serve: Callable[[Channel], None]) -> None:
        self._serve = serve
        self._waiting: queue.SimpleQueue[Channel] | None = None

    def serve(self, channel: Channel) -> None:
        """Have it served; here, too, where the machine has no thread left: better slow for all than not at all."""
        if channel.next_body_bytes() <= INLINE_BYTES:
            self._serve(channel)
            return
        if self._waiting is None:
            waiting: queue.SimpleQueue[Channel] = queue.SimpleQueue()
            try:
                threading.Thread(target=self._run, args=(waiting,), name="Bodies", daemon=True).start()
            except RuntimeError:
                self._serve(channel)
                return
            self._waiting = waiting
        self._waiting.put(channel)

    def _run(self, waiting: queue.SimpleQueue[Channel]) -> None:
        affinity.spread()
        while True:
            channel = waiting.get()
            with switchinterval.short():
                self._serve(channel)
