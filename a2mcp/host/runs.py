"""All running commands, from being handed over to being let go.

Owns every ``Run`` and the loop they live in; one thread drives it by calling ``loop.turn``. No thread per command: ends
are seen by process descriptor, output by pipe. Does not know what a result looks like: watchers get a ``Report``.
"""

from __future__ import annotations

import signal
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from a2mcp.errors import ToolError
from a2mcp.host.groups import inhabited
from a2mcp.host.joblog import Ending, State
from a2mcp.host.jobroom import Pruning
from a2mcp.host.loop import Loop
from a2mcp.host.progress import admit
from a2mcp.host.run import Run

if TYPE_CHECKING:
    from a2mcp.clock import Clock
    from a2mcp.host.capture import Capture
    from a2mcp.host.joblog import JobLog, Record
    from a2mcp.host.jobroom import JobRoom
    from a2mcp.host.process import Child
    from a2mcp.host.run import Report, Watcher
    from a2mcp.types import CallId, JobId

GRACE_S: Final = 2.0
"""Between TERM and KILL."""
LAST_WORDS_S: Final = 0.1
"""What a process that outlives its shell by a moment, such as ``> >(tee log)``, gets to finish its output."""

_STOP_PATIENCE_S: Final = 5.0
_RECHECK_S: Final = 0.05
_REMEMBERED: Final = 256


class Runs:
    """The running commands of one daemon.

    Args:
        clock: measures time limits and stamps starts.
        log: where jobs are kept.
        room: what they share; a command that arrives here has its place.
        output_bytes: output in one report.
    """

    def __init__(self, *, clock: Clock, log: JobLog, room: JobRoom, output_bytes: int) -> None:
        self._clock = clock
        self.log = log
        self.room = room
        self.output_bytes = output_bytes
        self.loop = Loop(clock)
        self._live: set[Run] = set()
        self.jobs: dict[JobId, Run] = {}
        self._cancelled_early: deque[CallId] = deque(maxlen=_REMEMBERED)
        self._stop_grace_s: float | None = None
        self._pruning = Pruning(self.loop.timers, lambda: log.prune(self.jobs.keys()))

    def running(self) -> int:
        """How many commands are looked after."""
        return len(self._live)

    def start(self, child: Child, watcher: Watcher) -> None:
        """Take over a started command; ``watcher`` is told at its end or when its ``wait_s`` is over."""
        run = Run(child, self._clock.now(), self.room.job_bytes)
        self._live.add(run)
        fault = partial(self._give_up, run)
        self.loop.on_readable(run.out.descriptor, partial(self._readable, run, run.out), fault)
        self.loop.on_readable(run.err.descriptor, partial(self._readable, run, run.err), fault)
        self.loop.on_readable(child.exit_descriptor, partial(self._exited, run), fault)
        admit(self.loop.timers, run, watcher)
        if child.command.timeout_s is not None:
            moment = child.started + child.command.timeout_s
            run.timeout = self.loop.timers.at(moment, partial(self._stop, run, Ending.TIMEOUT, GRACE_S))
        if run.feeder is not None and child.command.stdin:
            self.feed(run, child.command.stdin)
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
        self._stop(run, Ending.STOPPED, GRACE_S)

    def feed(self, run: Run, data: bytes) -> None:
        """Add to the standard input of a run; no bytes close it.

        Raises:
            ToolError: it is closed already, or too much waits.
        """
        if run.feeder is None:
            hint = "Start the command with wait=0 and a 'stdin' (it may be empty) to keep its input open."
            raise ToolError(f"Job {run.job} takes no input.", hint=hint)
        run.feeder.offer(data)
        run.feeder.pump(self.loop, partial(self._give_up, run))

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
            self._stop(run, Ending.SHUTDOWN, grace_s)

    # --- the life of one command ----------------------------------------------------------------------------------

    def _catch_up(self, run: Run, call_id: CallId) -> None:
        """Apply what was asked before the command arrived here."""
        if self._stop_grace_s is not None:
            self._stop(run, Ending.SHUTDOWN, self._stop_grace_s)
        elif call_id in self._cancelled_early:
            self._cancelled_early.remove(call_id)
            self._stop(run, Ending.CANCELLED, GRACE_S)

    def _cancel(self, run: Run, watcher: Watcher) -> None:
        if watcher.owner:
            self._stop(run, Ending.CANCELLED, GRACE_S)
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
            self._settle(run)

    def _drain(self, run: Run, capture: Capture) -> None:
        if capture.ended:
            return
        ended = capture.drain()
        if capture.outgrown:
            self._keep(run)
            ended = capture.drain()
        if ended:
            self.loop.forget(capture.descriptor)

    def _exited(self, run: Run) -> None:
        if run.child.status() is None:
            return
        self.loop.forget(run.child.exit_descriptor)
        run.exited = self._clock.monotonic()
        if run.timeout is not None:
            run.timeout.cancel()
        self._drain(run, run.out)
        self._drain(run, run.err)
        self._settle(run)

    def _settle(self, run: Run) -> None:
        """Find out how far the end of a command has come, after something about it has changed."""
        if run.exited is None or run.over:
            return
        if run.ending is None:
            if run.silent:
                self._end(run)
            elif run.state is State.RUNNING:
                self.loop.timers.after(LAST_WORDS_S, partial(self._leave_in_background, run))
        elif run.silent and (run.killed or not inhabited(run.child.pid)):
            self._end(run)
        else:
            self.loop.timers.after(_RECHECK_S, partial(self._end if run.killed else self._settle, run))

    def _leave_in_background(self, run: Run) -> None:
        """The command is over but something it started holds its output: the call ends, the output is still read."""
        if run.over or run.ending is not None or run.state is not State.RUNNING:
            return
        run.state = State.BACKGROUND
        self._keep(run)
        self._save(run)
        self._tell_all(run)

    def _stop(self, run: Run, ending: Ending, grace_s: float) -> None:
        if run.over:
            return
        kill_at = self._clock.monotonic() + grace_s
        if run.ending is None:
            run.ending = ending
            # A stopped process acts on TERM only once it is continued.
            run.child.signal(signal.SIGTERM, signal.SIGCONT)
        elif kill_at >= run.kill_at:
            return
        if run.kill is not None:
            run.kill.cancel()
        run.kill_at = kill_at
        run.kill = self.loop.timers.at(kill_at, partial(self._kill, run))
        self._settle(run)

    def _kill(self, run: Run) -> None:
        run.killed = True
        run.child.signal(signal.SIGKILL)
        self._settle(run)

    def _end(self, run: Run) -> None:
        if run.over:
            return
        run.over = True
        self._drain(run, run.out)
        self._drain(run, run.err)
        if not run.fits(self.output_bytes):
            self._keep(run)
        run.child.reap()
        if run.ending is None and run.child.left_something_running():
            # It may be on its way out, having closed its output a moment ago, or dead and not yet buried.
            self.loop.timers.after(LAST_WORDS_S, partial(self._look_again, run))
        else:
            self._conclude(run, group_remains=not run.silent)

    def _look_again(self, run: Run) -> None:
        if run in self._live:
            self._conclude(run, group_remains=inhabited(run.child.pid))

    def _conclude(self, run: Run, *, group_remains: bool) -> None:
        run.group_remains = group_remains
        run.state = State.ENDED
        self._save(run)
        self._tell_all(run)
        self._let_go(run)
        run.child.close()
        if run.job is not None:
            self._pruning.soon()

    def _let_go(self, run: Run) -> None:
        run.over = True
        if run in self._live:
            self._live.remove(run)
            self.room.give_back()
        if run.job is not None:
            self.jobs.pop(run.job, None)
        run.cancel_timers()
        for descriptor in run.descriptors():
            self.loop.forget(descriptor)
        run.out.close()
        run.err.close()

    def _give_up(self, run: Run) -> None:
        """Kill it at once, and tell whoever waits, so that no call waits for ever."""
        run.ending, run.state = run.ending or Ending.ABANDONED, State.ENDED
        try:
            self._tell_all(run)
        finally:
            self._let_go(run)
            run.child.discard()

    def _keep(self, run: Run) -> None:
        """Make the run a job unless it is one."""
        if run.job is None:
            self.jobs[run.keep_in(self.log)] = run
            self._save(run)

    def _save(self, run: Run) -> None:
        if run.job is not None:
            self.log.save(self.record(run))

    def _tell_all(self, run: Run) -> None:
        if not run.watchers:
            return
        report = self.report(run)
        while run.watchers:
            run.watchers.pop(0).tell(report)
