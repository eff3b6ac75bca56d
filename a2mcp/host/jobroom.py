"""How much commands may use of the machine, all of them together, and when old output is thrown away for new.

A command takes its place before it is started, in whatever thread starts it, and gives it back when it is let go.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from a2mcp.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.host.timers import Timer, Timers

_PRUNE_AFTER_S: Final = 0.5


class JobRoom:
    """The room that commands share. Used by several threads.

    Args:
        running: how many may run at one time.
        job_bytes: output on disk for one of them.
    """

    def __init__(self, *, running: int, job_bytes: int) -> None:
        self.job_bytes = job_bytes
        self._most = running
        self._taken = 0
        self._lock = threading.Lock()

    def take(self) -> None:
        """Take a place for a command that is about to be started.

        Raises:
            ToolError: as many run as may.
        """
        with self._lock:
            if self._taken < self._most:
                self._taken += 1
                return
        raise ToolError(
            f"The command was not started: {self._most} commands run already.",
            hint="Wait for some to end, or end them with jobs action=stop.",
        )

    def give_back(self) -> None:
        """Give the place of a command back."""
        with self._lock:
            self._taken -= 1


class Pruning:
    """Has old jobs thrown away a moment after there are new ones.

    Args:
        timers: of the thread that looks after the commands.
        prune: throws away what is too much.
    """

    def __init__(self, timers: Timers, prune: Callable[[], None]) -> None:
        self._timers = timers
        self._prune = prune
        self._timer: Timer | None = None

    def soon(self) -> None:
        """Prune in a moment. PERF: put off, so that a burst of ends reads the folder once."""
        if self._timer is None:
            self._timer = self._timers.after(_PRUNE_AFTER_S, self._now)

    def _now(self) -> None:
        self._timer = None
        self._prune()
