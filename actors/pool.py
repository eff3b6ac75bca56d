"""The pool of workers: most recently idle first, grows when all are busy, shrinks when they idle.

Owned by the executor and called only in its thread. Most recently idle first keeps the busy threads warm and lets the
others grow old, which is how they are found.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from a2mcp.host import switchinterval
from actors.kit import halt, launch
from actors.ref import Ref
from actors.worker import Run, Worker

if TYPE_CHECKING:
    from a2mcp.clock import Clock

MOST_WORKERS: Final = 128
"""Blocking tools at one time; more wait. A running command needs no worker."""
IDLE_S: Final = 30.0
CROWD: Final = 16
"""Busy workers beyond which turns are short.

PERF: with 8, sixteen clients that read files got a tenth less done; with 16, pings of others during the heaviest work
still take 12 to 19 ms at p99.
"""

logger = logging.getLogger("a2mcp.pool")


class Pool:
    """The workers, and the calls that wait for one."""

    def __init__(self, *, clock: Clock, run_calls: Ref[Any], most: int = MOST_WORKERS) -> None:
        self._clock = clock
        self._executor = run_calls
        self._most = most
        self._idle: list[Worker] = []
        self._busy: dict[Worker, Run] = {}
        self._waiting: deque[Run] = deque()
        self._started = 0
        self._crowded = False

    def run(self, message: Run) -> None:
        """Give a call to a worker, now or as soon as one is free."""
        worker = self._idle.pop() if self._idle else self._grow()
        if worker is None:
            self._waiting.append(message)
            return
        self._give(worker, message)

    def free(self, worker: Worker) -> None:
        """Take a worker back, or give it the next call."""
        if self._busy.pop(worker, None) is None:
            return
        if self._waiting:
            self._give(worker, self._waiting.popleft())
            return
        self._share_out()
        worker.idle_since = self._clock.monotonic()
        self._idle.append(worker)

    def tend(self) -> list[Run]:
        """Let go of workers that have idled long and of those that died; the calls that died with them."""
        limit = self._clock.monotonic() - IDLE_S
        while len(self._idle) > 1 and self._idle[0].idle_since < limit:
            halt(self._idle.pop(0), timeout=0)
        self._idle = [worker for worker in self._idle if worker.alive()]
        lost = []
        for worker in [worker for worker in self._busy if not worker.alive()]:
            message = self._busy.pop(worker)
            if worker.mailbox.empty():
                lost.append(message)
            else:  # It was never begun.
                self._waiting.appendleft(message)
        for _ in range(len(self._waiting)):
            self.run(self._waiting.popleft())
        self._share_out()
        return lost

    def stop(self) -> None:
        """Stop the workers that are idle."""
        while self._idle:
            halt(self._idle.pop(), timeout=1)

    def _give(self, worker: Worker, message: Run) -> None:
        self._busy[worker] = message
        self._share_out()
        worker.mailbox.put(message)

    def _share_out(self) -> None:
        """Where many work at a time, shorten their turns: those who answer would wait for all of them."""
        crowded = len(self._busy) > CROWD
        if crowded != self._crowded:
            self._crowded = crowded
            switchinterval.change(1 if crowded else -1)

    def _grow(self) -> Worker | None:
        """Start a worker; None when there are as many as there may be, or as the machine has threads for."""
        if len(self._busy) >= self._most:
            return None
        worker = Worker(Worker.mailbox_for(f"Worker-{self._started + 1}"), run_calls=self._executor)
        try:
            launch(worker)
        except RuntimeError as cause:
            # The call waits for a worker that comes free, or for the next sweep.
            logger.warning("[a2mcp] no thread for one more worker: %s", cause)
            return None
        self._started += 1
        return worker
