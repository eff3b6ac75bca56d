"""All running commands, from being handed over to being let go.

Owns every ``Run`` and the loop they live in; one thread drives it by calling ``loop.turn``. No thread per command: ends
are seen by process descriptor, output by pipe, and ``termination`` has the rest of the way. Does not know what a result
looks like: watchers get a ``Report``.
"""

from __future__ import annotations

import signal
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from a2mcp.host.descendants import ProcessGroups
from a2mcp.host.joblog import Ending, State
from a2mcp.host.jobroom import Pruning
from a2mcp.host.loop import Loop
from a2mcp.host.orphans import Orphans
from a2mcp.host.progress import admit
from a2mcp.host.run import Run, unwatchable
from a2mcp.host.termination import Termination

if TYPE_CHECKING:
    from a2mcp.clock import Clock
    from a2mcp.host.capture import Capture
    from a2mcp.host.descendants import Descendants
    from a2mcp.host.joblog import JobLog, Record
    from a2mcp.host.jobroom import JobRoom
    from a2mcp.host.process import Child
    from a2mcp.host.run import Report, Watcher
    from a2mcp.host.timers import Timer
    from a2mcp.types import CallId, JobId

GRACE_S: Final = 2.0
"""Between TERM and KILL."""

_STOP_PATIENCE_S: Final = 5.0
_TEND_S: Final = 1.0
"""Between two looks at who lost its parent while its command goes on."""
_ORPHANS_AFTER_S: Final = 0.5
_REMEMBERED: Final = 256


class Counts(NamedTuple):
    """How many commands there are."""

    running: int
    """Looked after now."""
    kept: int
    """Those of them that are jobs."""
    orphans: int
    """Of a daemon that was killed, as far as was seen."""


class Runs:
    """The running commands of one daemon.

    Args:
        clock: measures time limits and stamps starts.
        log: where jobs are kept.
        room: what they share; a command that arrives here has its place.
        output_bytes: output in one report.
        descendants: who belongs to a command beside its shell.
    """

    def __init__(
        self, *, clock: Clock, log: JobLog, room: JobRoom, output_bytes: int, descendants: Descendants | None = None
    ) -> None:
        self._clock = clock
        self.log = log
        self.room = room
        self.output_bytes = output_bytes
        self.loop = Loop(clock)
        self._live: set[Run] = set()
        self.jobs: dict[JobId, Run] = {}
        self.orphans = Orphans(log, clock)
        # PERF: not while the daemon starts; whoever asks earlier is answered all the same.
        self.loop.timers.after(_ORPHANS_AFTER_S, self.orphans.look)
        self._descendants = descendants or ProcessGroups()
        self._termination = Termination(self.loop, clock, self._descendants, self)
        self._tending: Timer | None = None
        self._cancelled_early: deque[CallId] = deque(maxlen=_REMEMBERED)
        self._stop_grace_s: float | None = None
        self._pruning = Pruning(self.loop.timers, lambda: log.prune(self.jobs.keys(), room.written), room)
        self._pruning.soon()  # The daemon before may have been killed, or have had other limits.

    def running(self) -> int:
        """How many commands are looked after."""
        return len(self._live)

    def counts(self) -> Counts:
        """How many there are, by what has become of them."""
        return Counts(len(self._live), len(self.jobs), self.orphans.count())

    def start(self, child: Child, watcher: Watcher) -> None:
        """Take over a started command; ``watcher`` is told at its end or when its ``wait_s`` is over.

        Raises:
            ToolError: the system does not let us watch it; then it is ended.
        """
        run = Run(child, self._clock.now(), self.room.budget())
        self._live.add(run)
        self._descendants.began(child)
        self._tend_later()
        fault = partial(self._give_up, run)
        try:
            for capture in (run.out, run.err):
                self.loop.on_readable(capture.descriptor, partial(self._readable, run, capture), fault)
            self.loop.on_readable(child.exit_descriptor, partial(self._termination.exited, run), fault)
            if run.feeder is not None and child.command.stdin:
                self.feed(run, child.command.stdin)
        except OSError as cause:
            self._give_up(run)
            raise unwatchable(cause) from cause
        admit(self.loop.timers, run, watcher)
        if child.command.timeout_s is not None:
            moment = child.started + child.command.timeout_s
            run.timeout = self.loop.timers.at(moment, partial(self._termination.stop, run, Ending.TIMEOUT, GRACE_S))
        self._catch_up(run, watcher.call_id)
        if child.command.wait_s > 0 or run.ending:
            moment = child.started + child.command.wait_s
            watcher.timer = self.loop.timers.at(moment, partial(self._hand_back, run, watcher))
        else:
            self._hand_back(run, watcher)

    def record(self, run: Run) -> Record:
        """Say how a run stands."""
        return run.record(self._clock.monotonic())

    def report(self, run: Run) -> Report:
        """Say how a run stands, with its output."""
        return run.report(self._clock.monotonic(), self.output_bytes)

    def watch_run(self, run: Run, watcher: Watcher, timeout_s: float) -> None:
        """Tell ``watcher`` when the run has ended, or how it stands after ``timeout_s``."""
        admit(self.loop.timers, run, watcher)
        watcher.timer = self.loop.timers.after(timeout_s, partial(self._hand_back, run, watcher))

    def stop(self, run: Run, watcher: Watcher) -> None:
        """End a run, TERM first and KILL after a grace, and tell ``watcher`` when it is over or will not be."""
        self.watch_run(run, watcher, GRACE_S + _STOP_PATIENCE_S)
        self._termination.stop(run, Ending.STOPPED, GRACE_S)

    def feed(self, run: Run, data: bytes) -> None:
        """Add to the standard input of a run; no bytes close it.

        Raises:
            ToolError: there is none, it is closed already, or too much waits.
        """
        run.feed(data, self.loop, partial(self._give_up, run))

    def cancel(self, call_id: CallId) -> None:
        """End the command that a call waits for; a call that only watches a job is answered."""
        for run in self._live:
            for watcher in run.watchers:
                if watcher.call_id == call_id:
                    self._cancel(run, watcher)
                    return
        self._cancelled_early.append(call_id)

    def close(self) -> None:
        """Kill what still runs, at once, and let everything go."""
        for run in list(self._live):
            self._give_up(run)
        self.loop.close()

    def stop_all(self, grace_s: float) -> None:
        """End every command and whatever is started from now on; ``running`` tells when they are gone."""
        self._stop_grace_s = grace_s
        for run in list(self._live):
            self._termination.stop(run, Ending.SHUTDOWN, grace_s)

    # --- the life of one command ----------------------------------------------------------------------------------

    def _catch_up(self, run: Run, call_id: CallId) -> None:
        """Apply what was asked before the command arrived here."""
        if self._stop_grace_s is not None:
            self._termination.stop(run, Ending.SHUTDOWN, self._stop_grace_s)
        elif call_id in self._cancelled_early:
            self._cancelled_early.remove(call_id)
            self._termination.stop(run, Ending.CANCELLED, GRACE_S)

    def _cancel(self, run: Run, watcher: Watcher) -> None:
        if watcher.owner:
            self._termination.stop(run, Ending.CANCELLED, GRACE_S)
        else:
            self._hand_back(run, watcher)

    def _hand_back(self, run: Run, watcher: Watcher) -> None:
        """Tell one watcher how the command stands; from now on it is a job."""
        run.watchers.remove(watcher)
        self._keep(run)
        watcher.tell(self.report(run))

    def _readable(self, run: Run, capture: Capture) -> None:
        self._drain(run, capture)
        if capture.ended:
            self._termination.settle(run)

    def _drain(self, run: Run, capture: Capture) -> None:
        if capture.ended:
            return
        ended = capture.drain()
        if capture.outgrown:
            self._keep(run)
            ended = capture.drain()
        self._pruning.grown()
        if ended:
            self.loop.forget(capture.descriptor)

    # --- what follows from how a command stands: the observer of ``Termination`` ------------------------------------

    def read(self, run: Run) -> None:
        """Take what the streams of a command hold now."""
        self._drain(run, run.out)
        self._drain(run, run.err)

    def save(self, run: Run) -> None:
        """Write down how a command stands, if it is a job."""
        if run.job is not None:
            self.log.save(self.record(run))

    def left(self, run: Run) -> None:
        """Answer whoever waits for a command that goes on without its shell, or in spite of us: it is a job now."""
        if run.job is None:
            self._keep(run)
        else:
            self.save(run)
        self._tell_all(run)

    def ended(self, run: Run) -> None:
        """Answer whoever waits for a command of which nothing runs any more, and let it go."""
        if not run.fits(self.output_bytes):
            self._keep(run)
        run.state = State.ENDED
        self.save(run)
        self._vacate(run)
        self._tell_all(run)
        self._let_go(run)
        run.child.close()
        if run.job is not None:
            self._pruning.soon()

    def _tend_later(self) -> None:
        if self._tending is None:
            self._tending = self.loop.timers.after(_TEND_S, self._tend)

    def _tend(self) -> None:
        self._tending = None
        if self._descendants.tend() or self._live:
            self._tend_later()

    def _vacate(self, run: Run) -> None:
        """Make its place free: before anybody is told, so that whoever has an answer can start the next command."""
        if run in self._live:
            self._live.remove(run)
            self.room.give_back()
            run.budget.release()

    def _let_go(self, run: Run) -> None:
        run.over = True
        self._vacate(run)
        self._descendants.over(run.child)
        if run.job is not None:
            self.jobs.pop(run.job, None)
        self._termination.unwatch(run)
        self.loop.forget(*run.descriptors())
        run.let_go()

    def _give_up(self, run: Run) -> None:
        """Kill it at once, and tell whoever waits, so that no call waits for ever."""
        run.ending, run.state = run.ending or Ending.ABANDONED, State.ENDED
        self._vacate(run)
        try:
            self._tell_all(run)
        finally:
            self._let_go(run)
            self._termination.signal(run, signal.SIGKILL)
            run.child.discard()

    def _keep(self, run: Run) -> None:
        """Make the run a job unless it is one."""
        if run.job is None:
            self.jobs[run.keep_in(self.log)] = run
            self.save(run)

    def _tell_all(self, run: Run) -> None:
        if not run.watchers:
            return
        report = self.report(run)
        while run.watchers:
            run.watchers.pop(0).tell(report)
