"""How a command comes to its end: by itself, by order, and what becomes of those it leaves behind.

Moves a ``Run`` along from the end of its shell until nothing of it runs any more. Timers and watched processes wake it.
Does not know who is told: that is the observer's.
"""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from a2mcp.host.joblog import MOST_SURVIVORS, State

if TYPE_CHECKING:
    from a2mcp.clock import Clock
    from a2mcp.host.descendants import Descendants
    from a2mcp.host.joblog import Ending
    from a2mcp.host.loop import Loop
    from a2mcp.host.run import Run

LAST_WORDS_S: Final = 0.1
"""What a process that outlives its shell by a moment, such as ``> >(tee log)``, gets to finish."""

_RECHECK_S: Final = 0.05
_KILL_PATIENCE_S: Final = 0.5
"""After KILL. Who is there then cannot be ended by us: it became another user's, or hangs in the kernel."""
_UNWATCHED_S: Final = 1.0
"""Between two looks at those who could not be watched."""


class Observer(Protocol):
    """What follows from how a command stands."""

    def read(self, run: Run) -> None:
        """Take what its streams hold now."""
        ...

    def save(self, run: Run) -> None:
        """Write down how it stands, if it is a job."""
        ...

    def left(self, run: Run) -> None:
        """It goes on without its shell, or in spite of us."""
        ...

    def ended(self, run: Run) -> None:
        """Nothing of it is awaited any more."""
        ...


class Termination:
    """Brings commands to their ends.

    Args:
        loop: wakes it.
        clock: for the graces.
        descendants: who belongs to a command.
        observer: told how it stands.
    """

    def __init__(self, loop: Loop, clock: Clock, descendants: Descendants, observer: Observer) -> None:
        self._loop = loop
        self._clock = clock
        self._descendants = descendants
        self._observer = observer

    def exited(self, run: Run) -> None:
        """Go on after the end of the shell."""
        if run.child.status() is None:
            return
        self._loop.forget(run.child.exit_descriptor)
        run.exited = self._clock.monotonic()
        self._observer.read(run)
        self.settle(run)

    def settle(self, run: Run) -> None:
        """Find out how far the end of a command has come, after something about it has changed."""
        if run.exited is None or run.over:
            return
        if run.silent and not (self._watched_to_the_end(run) and self._descendants.remains(run.child)):
            self._end(run)
        elif run.ending is not None:
            self._press(run)
        elif run.state is State.RUNNING:
            self._later(run, LAST_WORDS_S)
            self._watch(run)
        else:
            self._watch(run)

    def stop(self, run: Run, ending: Ending, grace_s: float) -> None:
        """End a command and all that belongs to it: TERM now, KILL after the grace; a shorter grace overrules."""
        if run.over:
            return
        kill_at = self._clock.monotonic() + grace_s
        if run.ending is None:
            run.ending = ending
            # A stopped process acts on TERM only once it is continued.
            self.signal(run, signal.SIGTERM, signal.SIGCONT)
        elif kill_at >= run.kill_at:
            return
        if run.kill is not None:
            run.kill.cancel()
        run.kill_at = kill_at
        run.kill = self._loop.timers.at(kill_at, partial(self._kill, run))
        self.settle(run)

    def signal(self, run: Run, *numbers: signal.Signals) -> None:
        """Signal the group, which nobody can fork out of meanwhile, and whoever belongs to the command beside it."""
        child = run.child
        grouped = not child.reaped
        others = [one for one in self._descendants.members(child) if not (grouped and _group_of(one.pid) == child.pid)]
        child.signal(*numbers)
        for one in others:
            one.send(*numbers)

    def _watched_to_the_end(self, run: Run) -> bool:
        """Whether we can wait for those who remain. Where nobody can be seen, an ordered end is that of the shell."""
        return self._descendants.follows or run.ending is None

    def _kill(self, run: Run) -> None:
        run.killed = True
        self.signal(run, signal.SIGKILL)
        self._later(run, _RECHECK_S)
        self.settle(run)

    def _press(self, run: Run) -> None:
        """Wait for the end that was ordered; give up on who survives KILL."""
        if run.killed and self._clock.monotonic() >= run.kill_at + _KILL_PATIENCE_S:
            self._end(run)
        else:
            self._later(run, _RECHECK_S)

    def _later(self, run: Run, seconds: float) -> None:
        if run.look is None:
            run.look = self._loop.timers.after(seconds, partial(self._look, run))

    def _look(self, run: Run) -> None:
        run.look = None
        if run.over:
            return
        if run.killed:
            self.signal(run, signal.SIGKILL)  # Whoever was forked while the others were being killed.
            if run.exited is None:
                self._outlast(run)
                return
        if (
            run.ending is None
            and run.state is State.RUNNING
            and not (run.silent and not self._descendants.remains(run.child))
        ):
            self._leave(run)
        else:
            self.settle(run)

    def _outlast(self, run: Run) -> None:
        """The shell itself survives KILL: the call ends all the same."""
        if self._clock.monotonic() < run.kill_at + _KILL_PATIENCE_S:
            self._later(run, _RECHECK_S)
        else:
            run.group_remains = True
            self._observer.left(run)

    def _leave(self, run: Run) -> None:
        """The command is over but something it started is not: the call ends, and what remains is looked after."""
        if run.silent and not self._descendants.follows:
            self._end(run)
            return
        run.child.reap()
        run.state = State.BACKGROUND
        run.survivors = tuple(self._descendants.members(run.child)[:MOST_SURVIVORS])
        self._observer.left(run)
        self._watch(run)

    def _watch(self, run: Run) -> None:
        """Be woken by the end of one of those who remain; while they hold the output, that wakes us."""
        if not run.silent or run.watched >= 0:
            return
        members = self._descendants.members(run.child)
        handle = next((held for held in (one.hold() for one in members) if held is not None), None)
        if handle is None:
            self._later(run, _UNWATCHED_S)
            return
        step = partial(self._one_is_gone, run)
        try:
            self._loop.on_readable(handle, step, step)
        except OSError:  # The system watches no more.
            os.close(handle)
            self._later(run, _UNWATCHED_S)
            return
        run.watched = handle
        if run.state is State.BACKGROUND and run.survivors != (left := tuple(members[:MOST_SURVIVORS])):
            run.survivors = left
            self._observer.save(run)

    def _one_is_gone(self, run: Run) -> None:
        self.unwatch(run)
        self.settle(run)

    def unwatch(self, run: Run) -> None:
        """Let go of the one who is watched."""
        if run.watched >= 0:
            self._loop.forget(run.watched)
            os.close(run.watched)
            run.watched = -1

    def _end(self, run: Run) -> None:
        run.over = True
        self._observer.read(run)
        if run.ending is not None:
            run.child.signal(signal.SIGKILL)  # Nobody is there any more, or nobody can be seen.
        run.child.reap()
        run.group_remains = self._watched_to_the_end(run) and self._descendants.remains(run.child)
        run.survivors = tuple(self._descendants.members(run.child)[:MOST_SURVIVORS]) if run.group_remains else ()
        self._observer.ended(run)


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0
