"""Threads for what may wait for a disk: few, started when there is work, and with a bound on how much waits.

A file system that hangs holds these, and nothing else.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from a2mcp.errors import A2mcpError, Busy, Internal
from a2mcp.host import affinity, switchinterval
from a2mcp.protocol.refusal import response_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.http.server.parked import Parked
    from a2mcp.protocol.response import Response

    Job = Callable[[], None]

THREADS: Final = 8
WAITING: Final = 1024

logger = logging.getLogger("a2mcp.http")


class Workers:
    """A pool of threads.

    Args:
        name: of the threads.
        threads: at most so many.
        waiting: jobs that may wait for one.
    """

    def __init__(self, name: str, *, threads: int = THREADS, waiting: int = WAITING) -> None:
        self._name = name
        self._most = threads
        self._waiting = waiting
        self._jobs: deque[Job] = deque()
        lock = threading.Lock()
        self._changed = threading.Condition(lock)
        self._quiet = threading.Condition(lock)
        self._threads = 0
        self._idle = 0

    def answer(self, parked: Parked, make: Callable[[], Response]) -> None:
        """Complete a parked response with what a function returns or raises.

        Raises:
            Busy: too much waits already.
        """
        if len(self._jobs) >= self._waiting:
            raise Busy("too many requests for files wait already.", hint="Try again in a moment.")
        self.do(lambda: _complete(parked, make))

    def do(self, job: Job) -> None:
        """Do a job some time soon, whatever waits. For those who bring one at a time."""
        with self._changed:
            self._jobs.append(job)
            # One that was woken for an earlier job, and has not taken it yet, still counts as idle.
            if self._idle >= len(self._jobs):
                self._changed.notify()
                return
            start = self._threads < self._most
            self._threads += start
        if start:
            self._grow()

    def _grow(self) -> None:
        try:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        except RuntimeError as cause:
            # The job waits for a thread that comes free, or for the next job.
            logger.warning("[a2mcp] no thread for one more worker: %s", cause)
            with self._changed:
                self._threads -= 1

    def settle(self, seconds: float) -> bool:
        """Wait until all is done, but no longer than this; whether it is."""
        with self._changed:
            return self._quiet.wait_for(self._is_quiet, seconds)

    def _is_quiet(self) -> bool:
        return not self._jobs and self._idle == self._threads

    def _work(self) -> None:
        affinity.spread()
        while True:
            with self._changed:
                self._idle += 1
                if self._is_quiet():
                    self._quiet.notify_all()
                while not self._jobs:
                    self._changed.wait()
                self._idle -= 1
                job = self._jobs.popleft()
            try:
                with switchinterval.short():
                    job()
            except Exception:  # The rim: one job must not end the thread.
                logger.exception("[a2mcp] internal error:")


def _complete(parked: Parked, make: Callable[[], Response]) -> None:
    try:
        response = make()
    except A2mcpError as error:
        response = response_for(error)
    except BaseException:
        parked.complete(response_for(Internal()))
        raise
    parked.complete(response)
