"""The reply of a call that the daemon makes itself, for its agent or for a tool: a ``Reply`` with no connection behind.

Owns what each ``Reply`` promises: one answer, and that whoever works on it hears that nobody waits any more. Does not
know what is done with the answer.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.protocol.response import Response


class LocalReply:
    """A ``Reply`` whose answer is given to a function.

    Args:
        answered: is given the response, once, on whatever thread completes it; must not block.
    """

    def __init__(self, answered: Callable[[Response], object]) -> None:
        self._answered = answered
        self._lock = threading.Lock()
        self._completed = False
        self._left = False
        self._on_gone: Callable[[], None] | None = None

    def complete(self, response: Response) -> bool:
        """Give the response on, once."""
        with self._lock:
            if self._completed:
                return False
            self._completed = True
        self._answered(response)
        return True

    def begin_stream(self) -> bool:
        """Never: only the whole answer is of use here."""
        return False

    def send(self, message: bytes) -> bool:  # noqa: ARG002 - as the protocol has it
        """Drop it, as there is no stream."""
        return False

    def tend(self, now: float) -> None:
        """Nothing to do: there is no stream to keep alive."""

    def when_gone(self, tell: Callable[[], None]) -> None:
        """Have it told when ``leave`` is called; at once when it has been."""
        with self._lock:
            self._on_gone = tell
            left = self._left
        if left:
            tell()

    def leave(self) -> None:
        """Wait no more: whoever works on the answer is told, unless it is there already."""
        with self._lock:
            if self._completed or self._left:
                return
            self._left = True
            tell = self._on_gone
        if tell is not None:
            tell()
