"""How much commands may use of the machine, all of them together, and when old output is thrown away for new.

A command takes its place before it is started, in whatever thread starts it, and gives it back when it is let go.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from a2mcp.errors import ToolError
from a2mcp.host.capture import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.host.timers import Timer, Timers

_PRUNE_AFTER_S: Final = 0.5


class JobRoom:
    """The room that commands share. Used by several threads.

    Args:
        running: how many may run at one time.
        job_bytes: output on disk for one of them.
        kept_bytes: output on disk for all.
    """

    def __init__(self, *, running: int, job_bytes: int, kept_bytes: int) -> None:
        self._job_bytes = job_bytes
        self._disk = Budget(kept_bytes)
        self.much = max(1, kept_bytes // 8)
        """New output after which old output is looked at."""
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

    def budget(self) -> Budget:
        """The part of the disk that a command may use, as long as the others leave it."""
        return Budget(self._job_bytes, self._disk)

    @property
    def written(self) -> int:
        """Bytes that the running commands have on disk."""
        return self._disk.spent


class Pruning:
    """Has old jobs thrown away a moment after there are new ones, or much new output.

    Args:
        timers: of the thread that looks after the commands.
        prune: throws away what is too much.
        room: what commands share.
    """

    def __init__(self, timers: Timers, prune: Callable[[], None], room: JobRoom) -> None:
        self._timers = timers
        self._prune = prune
        self._room = room
        self._timer: Timer | None = None
        self._seen = 0

    def grown(self) -> None:
        """Prune if the running commands have written much since the last time; they may have written now."""
        self._seen = min(self._seen, self._room.written)
        if self._room.written - self._seen >= self._room.much:
            self.soon()

    def soon(self) -> None:
        """Prune in a moment. PERF: put off, so that a burst of ends reads the folder once."""
        if self._timer is None:
            self._timer = self._timers.after(_PRUNE_AFTER_S, self._now)

    def _now(self) -> None:
        self._timer = None
        self._seen = self._room.written
        self._prune()
