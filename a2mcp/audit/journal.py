"""The log: append, rotate, count, report.

Owns the file and the one generation before it. Does not know what a record says: it is given lines. Nothing here raises
for what the disk does, because a call must never notice the log.
"""

import contextlib
import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec

from a2mcp.audit.logfile import LogFile, ShortWriteError, flush_directory, replace_counting
from a2mcp.clock import Clock

LIMIT = 512 * 1024
"""Bytes after which the log becomes the older generation."""
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

    def add(self, times: int, cause: OSError) -> None:
        before = self.count
        self.count += times
        if before == 0 or before // REPORT_EVERY != self.count // REPORT_EVERY:
            self._report(f"[a2mcp] {self._what} ({cause.strerror or cause})")


class Journal:
    """An append-only file of lines with one older generation, ``<path>.1``, beside it.

    The file is opened at the first append and kept open; when it was moved, deleted, changed or replaced by somebody
    else, it is opened anew. A write that fails is counted and reported, and the next append tries again. It has one
    owner: two threads or two processes must not share it.

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
        self._rotated_away = 0

    @property
    def counts(self) -> Counts:
        """What became of the records so far."""
        return Counts(self._written, self._lost.count, self._rotated_away)

    def append(self, lines: Sequence[bytes]) -> None:
        """Write a group of lines in their order, with one write unless the file is full on the way.

        When it returns, every line is in the file or counted as a failure.

        Args:
            lines: records that each end in a line break and contain no other.
        """
        left = lines
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
        return self._reopen()

    def _reopen(self) -> LogFile:
        self.close()
        self._log = LogFile(self._path)
        if self._sync:
            flush_directory(self._path.parent)
        return self._log

    def _fitting(self, lines: Sequence[bytes], log: LogFile) -> int:
        return bisect_right(list(accumulate(map(len, lines))), self._limit - log.taken)

    def _write(self, log: LogFile, lines: Sequence[bytes]) -> None:
        log.append(b"".join(lines))
        if self._sync:
            log.flush()
        self._written += len(lines)

    def _rotate(self, log: LogFile) -> LogFile:
        # Somebody else may have rotated since the last look; renaming what they left would lose a generation.
        if log.is_ours():
            try:
                self._rotated_away += replace_counting(self._path, previous(self._path))
            except OSError as cause:
                self._stuck.add(1, cause)
                return log
        return self._reopen()

    def _fail(self, lines: Sequence[bytes], cause: OSError) -> None:
        self.close()
        taken = b"".join(lines)[: cause.written] if isinstance(cause, ShortWriteError) else b""
        whole = taken.count(b"\n")
        self._written += whole
        self._lost.add(len(lines) - whole, cause)
