"""The promise of a response: what the app returns instead of one, so that no thread waits.

The app gives it back as its iterable; the channel sees the type, attaches itself and goes on. Whoever completes it, on
whatever thread and whether before or after that, sends the response.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.protocol.response import Response


class Parked:
    """A response that comes later; a ``Reply`` to those who complete it, a WSGI iterable to the app."""

    __slots__ = ("_deliver", "_lock", "_response")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deliver: Callable[[Response], None] | None = None
        self._response: Response | None = None

    def attach(self, deliver: Callable[[Response], None]) -> None:
        """Say where the response goes; called once, by the channel."""
        with self._lock:
            self._deliver = deliver
            response = self._response
        if response is not None:
            deliver(response)

    def complete(self, response: Response) -> bool:
        """Send the response, once. Later calls change nothing and return False."""
        with self._lock:
            if self._response is not None:
                return False
            self._response = response
            deliver = self._deliver
        if deliver is not None:
            deliver(response)
        return True

    @property
    def done(self) -> bool:
        """Whether the response is there."""
        return self._response is not None

    def __iter__(self) -> NoReturn:
        raise TypeError("a parked response is attached to its connection, not iterated")
