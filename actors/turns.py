"""Turns: the one thread in which agents' turns run, each a task of its event loop. There is none while none runs.

The loop belongs to the agent's library, which is asynchronous; no actor waits for it, and it waits for no actor. Work
begins in the loop and tells whoever began it by message.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Work = Callable[[], Coroutine[Any, Any, None]]

IDLE_S: Final = 30.0
"""How long the thread stays for another turn."""


class Run:
    """Something that runs in the loop, or is about to."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """Begin to end it. May be called from any thread, and more than once."""
        # A loop that is closed has nothing left to cancel.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self.task is not None:  # Always: beginning was called for first.
            self.task.cancel()


class Turns:
    """The thread and its loop.

    Args:
        idle_s: how long the thread stays without work.
    """

    def __init__(self, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._changing = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, work: Work, cut: Callable[[], None]) -> Run:
        """Run something in the loop. It sees to its own errors; ``cut`` is called when it never came to begin.

        Raises:
            RuntimeError: the machine has no thread left.
        """
        with self._changing:
            loop = self._loop or self._start()
            self._running += 1
            run = Run(loop)
            loop.call_soon_threadsafe(self._begin, run, work, cut)
        return run

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        try:
            threading.Thread(target=_main, args=(loop,), name="Turns", daemon=True).start()
        except RuntimeError:
            loop.close()
            raise
        self._loop = loop
        return loop

    def _begin(self, run: Run, work: Work, cut: Callable[[], None]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            if task.cancelled():
                cut()
            self._ended(loop)

        loop = run._loop  # noqa: SLF001 - the two are one thing
        if self._timer is not None:
            self._timer.cancel()
        run.task = loop.create_task(work())
        run.task.add_done_callback(ended)

    def _ended(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._changing:
            self._running -= 1
        self._timer = loop.call_later(self._idle_s, self._perhaps_stop, loop)

    def _perhaps_stop(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._changing:
            if self._running == 0:
                self._loop = None
                loop.stop()


def _main(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
