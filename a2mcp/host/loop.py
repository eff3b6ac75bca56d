"""One thread's wait for many things: descriptors and deadlines, and what is to be done when they are ready.

Knows nothing of commands. A step that fails is reported and costs only what it belongs to: this is a rim.
"""

from __future__ import annotations

import logging
import selectors
from typing import TYPE_CHECKING

from a2mcp.host.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import FileDescriptorLike

    from a2mcp.clock import Clock

logger = logging.getLogger("a2mcp.jobs")


def _nothing() -> None:
    """Do nothing: waking up was all."""


class Loop:
    """A selector and its deadlines.

    Args:
        clock: what deadlines are measured with.
    """

    def __init__(self, clock: Clock) -> None:
        self.timers = Timers(clock)
        self._selector = selectors.DefaultSelector()
        self._watched: set[FileDescriptorLike] = set()

    def on_readable(
        self, source: FileDescriptorLike, step: Callable[[], None] = _nothing, fault: Callable[[], None] = _nothing
    ) -> None:
        """Do ``step`` whenever ``source`` is readable; ``fault`` once should the step fail.

        Raises:
            OSError: the system watches no more descriptors.
        """
        self._selector.register(source, selectors.EVENT_READ, (step, fault))
        self._watched.add(source)

    def on_writable(self, source: FileDescriptorLike, step: Callable[[], None], fault: Callable[[], None]) -> None:
        """Do ``step`` whenever ``source`` is writable; as ``on_readable``."""
        self._selector.register(source, selectors.EVENT_WRITE, (step, fault))
        self._watched.add(source)

    def forget(self, *sources: FileDescriptorLike) -> None:
        """Stop looking at ``sources``. To be called before they are closed; twice is harmless until then."""
        for source in self._watched.intersection(sources):
            self._watched.discard(source)
            self._selector.unregister(source)

    def turn(self, limit_s: float | None = None) -> None:
        """Wait until something happens, at most ``limit_s``, and deal with it."""
        waits = [seconds for seconds in (self.timers.timeout(), limit_s) if seconds is not None]
        for key, _ in self._selector.select(min(waits) if waits else None):
            if key.fileobj not in self._watched:
                continue  # An earlier step of this turn has closed it.
            step, fault = key.data
            if not self._did(step):
                self._did(fault)
        self._did(self.timers.fire)

    def close(self) -> None:
        """Close the selector."""
        self._selector.close()

    def _did(self, step: Callable[[], None]) -> bool:
        try:
            step()
        except Exception:
            logger.exception("[a2mcp] internal error: a running command could not be looked after")
            return False
        return True
