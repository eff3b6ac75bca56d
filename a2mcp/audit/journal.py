"""The log: chain, append, rotate, count, report.

Owns the file, the one generation before it, and where the chain of lines stands. Does not know what a record says: it
is given lines. Nothing here raises for what the disk does, because a call must never notice the log.
"""

import contextlib
import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec

from a2mcp.audit import chain
from a2mcp.audit.chain import PREV_BYTES, START, Link
from a2mcp.audit.logfile import LogFile, ShortWriteError, flush_directory, last_lines, replace_counting
from a2mcp.clock import Clock

LIMIT = 512 * 1024
"""Bytes after which the log becomes the older generation."""
TAIL = 64 * 1024
"""Bytes from the end of a log in which the last line is looked for, so that no start reads a whole log."""
REPORT_EVERY = 100
CHECK_S = 0.001
"""Seconds between two looks at the path. A look costs 2 µs, so a busy log looks once for many groups, and an idle one
before each."""


class Counts(msgspec.Struct, frozen=True):
    """What became of the records so far."""

    written: int
    failures: int
    """Records that are not in the log, or of which the disk did not say that it has them."""
    rotated_away: int
    """Records, those of earlier runs too, in generations that a rotation replaced."""


def previous(path: Path) -> Path:
    """Where the generation before ``path`` is."""
    return path.with_name(path.name + ".1")


def last_link(path: Path) -> Link | None:
    """The last whole line near the end of a file that has a place in a chain."""
    try:
        lines = last_lines(path, TAIL)
    except OSError:
        return None
    found = (chain.read(line) for line in reversed(lines))
    return next((line.link for line in found if line is not None), None)


def to_stderr(text: str) -> None:
    """Tell the operator; when nobody listens any more, that is no failure of the log."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


class _Complaint:
    """A line for the operator at the first and every hundredth of the same trouble."""

    def __init__(self, what: str, report: Callable[[str], None]) -> None:
        self._what = what
        self._report = report
        self.count = 0

    def add(self, times: int, why: object) -> None:
        before = self.count
        self.count += times
        if before == 0 or before // REPORT_EVERY != self.count // REPORT_EVERY:
            self._report(f"[a2mcp] {self._what} ({why})")


class Journal:
    """An append-only file of chained lines with one older generation, ``<path>.1``, beside it.

    The file is opened at the first append and kept open; when it was moved, deleted, changed or replaced by somebody
    else, it is opened anew, and the chain goes on from what was written, whatever is there now. A write that fails is
    counted and reported, and the next append tries again. It has one owner: two threads or two processes must not share
    it.

    Args:
        path: the log; its directory is not made here.
        clock: measures ``check_s``.
        limit: bytes that the file does not grow beyond.
        sync: whether every group waits until the disk has it.
        report: is given a line for the operator at the first failure and at every hundredth.
        check_s: how long a change by somebody else may go unnoticed.
    """

    def __init__(  # noqa: PLR0913 - all but two have a default
        self,
        path: Path,
        *,
        clock: Clock,
        limit: int = LIMIT,
        sync: bool = False,
        report: Callable[[str], None] = to_stderr,
        check_s: float = CHECK_S,
    ) -> None:
        self._path = path
        self._clock = clock
        self._limit = limit
        self._sync = sync
        self._check_s = check_s
        self._looked = 0.0
        self._log: LogFile | None = None
        self._written = 0
        self._lost = _Complaint(f"audit record not written to {path}", report)
        self._stuck = _Complaint(f"audit log not rotated at {path}", report)
        self._changed = _Complaint(f"audit log changed by somebody else at {path}", report)
        self._rotated_away = 0
        self._last: Link | None = None
        self._given = 0
        self._opened = False

    @property
    def last(self) -> Link:
        """The last line that was written, by an earlier run if there was none in this; first asked for, it is read."""
        if self._last is None:
            self._last = self._found()
            self._given = self._last.seq
        return self._last

    @property
    def counts(self) -> Counts:
        """What became of the records so far."""
        return Counts(self._written, self._lost.count, self._rotated_away)

    def append(self, lines: Sequence[bytes]) -> None:
        """Write a group of lines in their order, with one write unless the file is full on the way.

        When it returns, every line is in the file or counted as a failure.

        Args:
            lines: records that each are a JSON object, end in a line break and contain no other.
        """
        left = self._chained(lines)
        try:
            log = self._ready()
            while left:
                count = self._fitting(left, log)
                if count == 0 and log.taken:
                    log = self._rotate(log)
                    count = self._fitting(left, log)
                # One line goes in whatever the limit says: a log that cannot be rotated is still a log.
                count = count or 1
                self._write(log, left[:count])
                left = left[count:]
        except OSError as cause:
            self._fail(left, cause)

    def _chained(self, lines: Sequence[bytes]) -> list[bytes]:
        # The number of a line that gets lost is not given to another: the hole says how many were.
        last = self.last
        joined = chain.join(lines, Link(self._given, last.hash))
        self._given += len(lines)
        return joined

    def close(self) -> None:
        """Let go of the file. A later append opens it again."""
        log, self._log = self._log, None
        if log is not None:
            with contextlib.suppress(OSError):
                log.close()

    def _ready(self) -> LogFile:
        now = self._clock.monotonic()
        if self._log is not None and now - self._looked < self._check_s:
            return self._log
        self._looked = now
        if self._log is not None and self._log.is_ours():
            return self._log
        log = self._reopen()
        if (found := self._found()) != self.last:
            self._changed.add(1, f"it ends with record {found.seq}, not {self.last.seq}")
        return log

    def _found(self) -> Link:
        return last_link(self._path) or last_link(previous(self._path)) or START

    def _reopen(self) -> LogFile:
        self.close()
        self._log = LogFile(self._path)
        self._opened = True
        if self._sync:
            flush_directory(self._path.parent)
        return self._log

    def _fitting(self, lines: Sequence[bytes], log: LogFile) -> int:
        room = self._limit - log.taken - PREV_BYTES * self._opened
        return bisect_right(list(accumulate(map(len, lines))), room)

    def _write(self, log: LogFile, lines: Sequence[bytes]) -> None:
        if self._opened:
            log.append(b"".join((chain.naming(lines[0], self.last.hash), *lines[1:])))
        else:
            log.append(b"".join(lines))
        self._took(lines)
        if self._sync:
            log.flush()
        self._written += len(lines)

    def _took(self, lines: Sequence[bytes]) -> None:
        self._last = chain.link_of(lines[-1])
        self._opened = False

    def _rotate(self, log: LogFile) -> LogFile:
        # Somebody else may have rotated since the last look; renaming what they left would lose a generation.
        if log.is_ours():
            try:
                self._rotated_away += replace_counting(self._path, previous(self._path))
            except OSError as cause:
                self._stuck.add(1, cause.strerror or cause)
                return log
        return self._reopen()

    def _fail(self, lines: Sequence[bytes], cause: OSError) -> None:
        self.close()
        taken = cause.written - PREV_BYTES * self._opened if isinstance(cause, ShortWriteError) else 0
        # One that lacks nothing but its line break is whole: the next append gives it that.
        whole = bisect_right([end - 1 for end in accumulate(map(len, lines))], taken)
        if whole:
            self._took(lines[:whole])
        self._written += whole
        self._lost.add(len(lines) - whole, cause.strerror or cause)
