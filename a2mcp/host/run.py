"""One running command: the child, its two streams, who waits for it, and how far its end has come.

Plain state; ``runs`` moves it along.
"""

from __future__ import annotations

import logging
import signal
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.clock import iso
from a2mcp.errors import ToolError
from a2mcp.host import terminal
from a2mcp.host.capture import Capture, Excerpt
from a2mcp.host.feeder import Feeder
from a2mcp.host.identity import Identity
from a2mcp.host.joblog import Ending, Record, State
from a2mcp.masking import mask

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from a2mcp.host.capture import Budget
    from a2mcp.host.joblog import JobLog, Stream
    from a2mcp.host.loop import Loop
    from a2mcp.host.process import Child
    from a2mcp.host.timers import Timer
    from a2mcp.types import CallId, JobId

    Progress = Callable[[int, str], None]

_BY_SIGNAL: Final = 128
_LINE_BYTES: Final = 1024
_LINE_SHOWN: Final = 200

logger = logging.getLogger("a2mcp.jobs")


class Report(msgspec.Struct, frozen=True):
    """What can be said about a command to whoever asked."""

    record: Record
    stdout: Excerpt
    stderr: Excerpt


def shares(out: int, err: int, size: int) -> tuple[int, int]:
    """Divide ``size`` bytes between two streams: standard error gets half if it needs it, and what the other leaves."""
    for_err = min(err, max(size // 2, size - out))
    return size - for_err, for_err


class Watcher:
    """Somebody who is to be told: once, at the end of the command or at a deadline.

    Args:
        call_id: the call that waits.
        answer: completes it; runs in the loop's thread.
        owner: whether the command was started by this call, so that cancelling the call ends it.
        progress: told now and then, until the answer, the bytes of output so far and its last line.
    """

    __slots__ = ("answer", "call_id", "owner", "progress", "timer")

    def __init__(
        self,
        call_id: CallId,
        answer: Callable[[Report], None],
        *,
        owner: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.call_id = call_id
        self.answer = answer
        self.owner = owner
        self.progress = progress
        self.timer: Timer | None = None

    def tell(self, report: Report) -> None:
        """Tell, and make sure that it is not told again at the deadline."""
        if self.timer is not None:
            self.timer.cancel()
        try:
            self.answer(report)
        except Exception:  # The rim towards whoever asked: the other watchers are told all the same.
            logger.exception("[a2mcp] internal error: the state of a command could not be reported")


class Run:
    """A command that was started and not yet let go.

    Args:
        child: the process.
        started_at: the wall clock at the start.
        budget: of output on disk.
    """

    def __init__(self, child: Child, started_at: datetime, budget: Budget) -> None:
        out, err, stdin = child.popen.stdout, child.popen.stderr, child.popen.stdin
        assert out is not None  # noqa: S101 - spawn always asks for both
        assert err is not None  # noqa: S101
        self.child = child
        self.budget = budget
        self.started_at = started_at
        self.out = Capture(out.fileno(), budget)
        self.err = Capture(err.fileno(), budget)
        self.feeder = None if stdin is None else Feeder(stdin)
        self.watchers: list[Watcher] = []
        self.job: JobId | None = None
        self.identity: Identity | None = None
        self.state = State.RUNNING
        self.exited: float | None = None
        self.ending: Ending | None = None
        self.killed = False
        self.over = False
        """Whether nothing more is awaited of it."""
        self.group_remains = False
        self.survivors: tuple[Identity, ...] = ()
        """Who was seen to outlive the shell."""
        self.watched = -1
        """A descriptor that one of them is watched by."""
        self.timeout: Timer | None = None
        self.look: Timer | None = None
        """When the end is looked at again, though nothing has happened."""
        self.kill: Timer | None = None
        self.kill_at = 0.0

    @cached_property
    def shown_command(self) -> str:
        """The command without the secrets in it: it is kept with the job and shown to whoever lists the jobs."""
        return mask(self.child.command.text)

    @property
    def silent(self) -> bool:
        """Whether both streams have ended."""
        return self.out.ended and self.err.ended

    def record(self, now: float) -> Record:
        """Say how it stands."""
        status = None if self.exited is None else self.child.status()
        return Record(
            id=self.job,
            command=self.shown_command,
            cwd=str(self.child.command.cwd),
            pid=self.child.pid,
            identity=self.identity,
            started_at=iso(self.started_at),
            duration_s=(now if self.exited is None else self.exited) - self.child.started,
            state=self.state,
            exit_code=_BY_SIGNAL - status if status is not None and status < 0 else status,
            signal=_signal_name(-status) if status is not None and status < 0 else None,
            ending=self.ending,
            output_bytes=self.out.kept + self.err.kept,
            dropped=self.out.dropped + self.err.dropped,
            group_remains=self.group_remains,
            mark=self.child.mark,
            survivors=self.survivors,
        )

    def report(self, now: float, size: int) -> Report:
        """Say how it stands, with at most ``size`` bytes of output."""
        out_size, err_size = shares(self.out.total, self.err.total, size)
        return Report(self.record(now), self.out.excerpt(out_size), self.err.excerpt(err_size))

    @property
    def written(self) -> int:
        """Bytes of output so far, of both streams."""
        return self.out.total + self.err.total

    def last_line(self) -> str:
        """The last line of the output so far; of standard error where there is no other."""
        tail = (self.out if self.out.total else self.err).last(_LINE_BYTES)
        rows = terminal.clean(terminal.decode(tail, cut_before=True)).split("\n")
        return next((row.strip()[-_LINE_SHOWN:] for row in reversed(rows) if row.strip()), "")

    def fits(self, size: int) -> bool:
        """Whether a report of ``size`` bytes shows everything."""
        return self.written <= size

    def capture(self, stream: Stream) -> Capture:
        """Give one of the two streams."""
        return self.out if stream == "stdout" else self.err

    def keep_in(self, log: JobLog) -> JobId:
        """Become a job: from now on the output is in files and the run has a name."""
        job = self.job = log.create()
        if not self.child.reaped:
            self.identity = Identity.of(self.child.pid)
        self.out.keep_in(log.open_output(job, "stdout"))
        self.err.keep_in(log.open_output(job, "stderr"))
        return job

    def feed(self, data: bytes, loop: Loop, fault: Callable[[], None]) -> None:
        """Add to its standard input; no bytes close it.

        Raises:
            ToolError: there is none, it is closed already, or too much waits.
        """
        if self.feeder is None:
            hint = "Start the command with wait=0 and a 'stdin' (it may be empty) to keep its input open."
            raise ToolError(f"Job {self.job} takes no input.", hint=hint)
        self.feeder.offer(data)
        self.feeder.pump(loop, fault)

    def descriptors(self) -> tuple[int, ...]:
        """List what the loop may be looking at."""
        mine = (self.out.descriptor, self.err.descriptor, self.child.exit_descriptor)
        return mine if self.feeder is None else (*mine, self.feeder.descriptor)

    def let_go(self) -> None:
        """Make sure that no deadline of this run fires any more, and close the files of its output."""
        for timer in (self.timeout, self.look, self.kill, *(watcher.timer for watcher in self.watchers)):
            if timer is not None:
                timer.cancel()
        self.out.close()
        self.err.close()


def unwatchable(cause: OSError) -> ToolError:
    """Make the error for a command that had to be ended, because nothing would have told us of its end."""
    text = f"The command was ended, because the system does not let us watch it: {cause.strerror}."
    return ToolError(text, hint="Try again when other commands have ended.")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
