"""Jobs by name: those that run now and those that only the folder knows, answered in one form.

Does not move a running command along (``runs`` does) and does not know what a result looks like.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.errors import ToolError
from a2mcp.host.capture import Excerpt
from a2mcp.host.joblog import Ending, Page, State, unreadable
from a2mcp.host.run import Report, Watcher, shares
from a2mcp.host.runs import GRACE_S

if TYPE_CHECKING:
    from a2mcp.host.joblog import Record, Stream
    from a2mcp.host.runs import Runs
    from a2mcp.types import JobId

_LOOK_S: Final = 0.1
_KILL_PATIENCE_S: Final = 1.0
"""After KILL; who is there then cannot be ended by us."""


class JobBook:
    """What can be asked about jobs. Lives in the thread of ``runs``.

    Args:
        runs: the commands that are looked after, and the folder with all of them.
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._log = runs.log

    def records(self) -> list[Record]:
        """Say how every job stands, oldest first."""
        self._runs.orphans.look()
        live = [self._runs.record(run) for run in self._runs.jobs.values()]
        names = {record.id for record in live}
        stored = [record for record in self._log.all() if record.id not in names]
        return sorted(stored + live, key=lambda record: record.started_at)

    def record(self, job: JobId) -> Record:
        """Say how a job stands.

        Raises:
            ToolError: there is no such job.
        """
        run = self._runs.jobs.get(job)
        if run is None:
            self._runs.orphans.look()
        found = self._log.load(job) if run is None else self._runs.record(run)
        if found is None:
            raise ToolError(f"There is no job {job!a}.", hint="Call jobs with action=list for those that exist.")
        return found

    def report(self, job: JobId) -> Report:
        """Say how a job stands, with both ends of its output.

        Raises:
            ToolError: there is no such job.
        """
        run = self._runs.jobs.get(job)
        return self._stored(self.record(job)) if run is None else self._runs.report(run)

    def page(self, job: JobId, stream: Stream, offset: int, limit: int) -> Page:
        """Read a part of the output of a job; a negative offset counts from the end.

        Raises:
            ToolError: the output cannot be read.
        """
        run = self._runs.jobs.get(job)
        if run is None:
            return self._log.read(job, stream, offset, limit)
        capture = run.capture(stream)
        start = min(offset, capture.kept) if offset >= 0 else max(0, capture.kept + offset)
        try:
            return Page(capture.read(start, limit), start, capture.kept)
        except OSError as cause:
            raise unreadable(job, cause) from cause

    def wait(self, job: JobId, watcher: Watcher, timeout_s: float) -> None:
        """Tell ``watcher`` when the job has ended, or how it stands after ``timeout_s``.

        Raises:
            ToolError: there is no such job.
        """
        run = self._runs.jobs.get(job)
        if run is None:
            watcher.tell(self._stored(self.record(job)))
        else:
            self._runs.watch_run(run, watcher, timeout_s)

    def stop(self, job: JobId, watcher: Watcher) -> None:
        """End a job, TERM first and KILL after a grace, and tell ``watcher`` when it is over.

        Raises:
            ToolError: there is no such job.
        """
        run = self._runs.jobs.get(job)
        if run is not None:
            self._runs.stop(run, watcher)
            return
        record = self.record(job)
        if record.state is not State.ORPHAN:
            watcher.tell(self._stored(record))
            return
        for one in self._runs.orphans.of(record):
            one.send(signal.SIGTERM, signal.SIGCONT)
        self._runs.loop.timers.after(_LOOK_S, lambda: self._see_orphan(record, watcher, GRACE_S))

    def write(self, job: JobId, data: bytes) -> None:
        """Add to the standard input of a job; no bytes close it.

        Raises:
            ToolError: there is no such job, it has ended, or it takes no input.
        """
        run = self._runs.jobs.get(job)
        if run is None:
            state = self.record(job).state
            raise ToolError(f"Job {job} takes no input: it is {state}.", hint="Start the command again.")
        self._runs.feed(run, data)

    def _see_orphan(self, record: Record, watcher: Watcher, left_s: float) -> None:
        """Wait for processes whose end nobody is told of; kill them when the grace is over."""
        left = self._runs.orphans.of(record)
        if left and left_s > -_KILL_PATIENCE_S:
            if left_s <= 0:
                for one in left:
                    one.send(signal.SIGKILL)
            self._runs.loop.timers.after(_LOOK_S, lambda: self._see_orphan(record, watcher, left_s - _LOOK_S))
            return
        if left:
            watcher.tell(self._stored(record))
            return
        ended = msgspec.structs.replace(record, state=State.ENDED, ending=Ending.STOPPED, survivors=())
        self._log.save(ended)
        watcher.tell(self._stored(ended))

    def _stored(self, record: Record) -> Report:
        out, err = self._size(record, "stdout"), self._size(record, "stderr")
        out_size, err_size = shares(out, err, self._runs.output_bytes)
        return Report(record, self._excerpt(record, "stdout", out_size), self._excerpt(record, "stderr", err_size))

    def _size(self, record: Record, stream: Stream) -> int:
        return 0 if record.id is None else self._log.size(record.id, stream)

    def _excerpt(self, record: Record, stream: Stream, size: int) -> Excerpt:
        if record.id is None:
            return Excerpt(b"", b"", 0)
        total = self._log.size(record.id, stream)
        if total <= size:
            return Excerpt(self._log.read(record.id, stream, 0, size).data, b"", total)
        half = size // 2
        head = self._log.read(record.id, stream, 0, half).data
        return Excerpt(head, self._log.read(record.id, stream, -half, half).data, total)
