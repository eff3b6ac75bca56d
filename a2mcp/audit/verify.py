"""Whether the log is as it was written: every record whole, in its place, and none missing.

Owns the walk over the lines, from file to file. What a line that does not fit may mean is in ``diagnosis``. Memory
stays bounded whatever the files hold.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from a2mcp.audit import chain
from a2mcp.audit.chain import START, Chained, Link
from a2mcp.audit.diagnosis import (
    Diagnosis,
    Fault,
    Line,
    Place,
    fault_at,
    stands_in,
)
from a2mcp.audit.journal import previous
from a2mcp.audit.logfile import open_to_read
from a2mcp.audit.query import MAX_LINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    Opened = tuple[str, BinaryIO]

AHEAD: Final = 8192
"""Lines that are looked at behind the first that does not fit, and records that are remembered before it."""
_TRIES: Final = 50
_MOST_TORN: Final = 100


class Report(msgspec.Struct, kw_only=True):
    """What was found, up to the first fault."""

    files: list[str]
    """Those that were read, the oldest first."""
    lines: int = 0
    """Of the last file, as far as it was read."""
    records: int = 0
    """That are whole, in their order, and follow one another."""
    first: int = 0
    """The number of the first of them; what came before it is not here."""
    last: int = 0
    hash: str = ""
    """Of the last of them: what stands for all up to it."""
    unchained: int = 0
    """Records before the chain begins, of a version that had none: nothing can be said of them."""
    lost: int = 0
    """Records that, as the records themselves say, could not be written."""
    torn: list[Place] = msgspec.field(default_factory=list)
    """What crashes left of lines, the first hundred; no record that a caller had an answer for."""
    fault: Fault | None = None


@contextmanager
def opened_log(path: Path) -> Iterator[list[Opened]]:
    """Open both generations of a log as they stand at one moment, whatever is rotated meanwhile.

    Raises:
        OSError: one of them is a link or no regular file, or cannot be read.
    """
    for _ in range(_TRIES):
        with ExitStack() as stack:
            current = _open(path, stack)
            older = _open(previous(path), stack)
            # A file that is held open keeps its number: when it still has the name, the other was the one before it.
            if _is_at(current, path):
                yield [(place.name, file) for place, file in ((previous(path), older), (path, current)) if file]
                return
    raise OSError(errno.EBUSY, "rotated each time it was opened")


@contextmanager
def opened_files(paths: Sequence[Path]) -> Iterator[list[Opened]]:
    """Open copies of logs, the oldest first.

    Raises:
        OSError: one of them is not there, or cannot be read.
    """
    with ExitStack() as stack:
        yield [(str(path), stack.enter_context(path.open("rb"))) for path in paths]


def verify(files: Sequence[Opened], wanted: Iterable[str] = (), *, copies: bool = False) -> tuple[Report, set[str]]:
    """Read files to their end or to the first fault; the hashes that are wanted and were met come with the report.

    Args:
        files: the oldest first.
        wanted: hashes to look out for.
        copies: whether they may begin anywhere. A log begins where a file of the daemon's did.
    """
    walk = _Walk(files, {text.encode() for text in wanted}, copies=copies)
    walk.run()
    return walk.report, {met.decode() for met in walk.met}


class _Walk:
    """One pass over the lines."""

    def __init__(self, files: Sequence[Opened], wanted: set[bytes], *, copies: bool) -> None:
        self._lines = (line for name, file in files for line in _lines(name, file))
        self._wanted = wanted
        self._copies = copies
        self.met: set[bytes] = set()
        self.report = Report(files=[name for name, _ in files])
        self._at: Link | None = None
        self._odd: list[Line] = []
        """Lines without a place, since the last that has one."""
        self._earlier: dict[int, tuple[bytes, Place]] = {}

    def run(self) -> None:
        """Go on to the end or to the first fault."""
        for line in self._lines:
            self.report.lines = line.place.line
            if line.chained is None:
                self._keep(line)
                continue
            self.report.fault = self._fault(line, line.chained)
            if self.report.fault is not None:
                return
            self._settle(known=self._at is not None)
            self._accept(line.place, line.chained)
        self.report.fault = self._end()

    def _keep(self, odd: Line) -> None:
        if self._at is None and odd.whole:
            self.report.unchained += 1
        if len(self._odd) < _MOST_TORN or (odd.whole and not any(each.whole for each in self._odd)):
            self._odd.append(odd)

    def _fault(self, line: Line, chained: Chained) -> Fault | None:
        if self._at is None:
            return self._begins_wrong(line, chained)
        goes_on = chained.follows(self._at.hash) and chained.prev in {None, self._at.hash}
        if not (goes_on and chained.seq > self._at.seq):
            ahead = [each for each in islice(self._lines, AHEAD) if each.chained is not None]
            return fault_at(line, chained, Diagnosis(self._at, self._odd, ahead, self._earlier))
        odd = self._unexplained(torn=chained.prev is not None)
        if odd is None:
            return None
        return Fault.at(odd.place, "inserted", "It has no hash, and the chain goes on behind it.")

    def _begins_wrong(self, line: Line, chained: Chained) -> Fault | None:
        odd = self._unexplained(torn=True)
        if chained.prev is None:
            return self._begins_within(line, chained)
        if odd is not None and chained.prev != START.hash:
            text = f"It has no hash, though record {chained.seq} behind it is not the first of the chain."
            return Fault.at(odd.place, "inserted", text)
        if chained.follows(chained.prev):
            return None
        return Fault.at(line.place, "altered", f"Record {chained.seq} does not fit its hash.")

    def _begins_within(self, line: Line, chained: Chained) -> Fault | None:
        if self._odd:
            return stands_in(self._odd[0], chained.seq - 1)
        if self._copies:
            return None
        if any(each.chained and each.chained.seq < chained.seq for each in islice(self._lines, AHEAD)):
            return Fault.at(line.place, "reordered", f"Record {chained.seq} stands before others that it followed.")
        text = "A file begins by naming the hash before it, and this does not: others stood before it."
        return Fault.at(line.place, "removed", text)

    def _unexplained(self, *, torn: bool) -> Line | None:
        """The first line without a place that is not what a crash leaves."""
        return next((odd for odd in self._odd if odd.whole or not torn), None)

    def _settle(self, *, known: bool) -> None:
        torn = [odd.place for odd in self._odd if known or not odd.whole]
        self.report.torn.extend(torn[: _MOST_TORN - len(self.report.torn)])
        self._odd.clear()

    def _accept(self, place: Place, chained: Chained) -> None:
        if self._at is None:
            self.report.first = chained.seq
        else:
            self.report.lost += max(0, chained.seq - self._at.seq - 1)
        self._at = chained.link
        self._earlier[chained.seq] = chained.hash, place
        if len(self._earlier) > AHEAD:
            del self._earlier[next(iter(self._earlier))]
        if chained.hash in self._wanted:
            self.met.add(chained.hash)
        self.report.records += 1
        self.report.last, self.report.hash = chained.seq, chained.hash.decode()

    def _end(self) -> Fault | None:
        # What a crash has torn has no line break, until the next record gives it one.
        odd = next((each for each in self._odd if each.whole or not each.open), None)
        if self._at is not None and odd is not None:
            if odd.numbered or not odd.whole:
                return stands_in(odd, self._at.seq + 1)
            text = "It has no hash: somebody put it there, or a version of the daemon that makes none."
            return Fault.at(odd.place, "inserted", text)
        self._settle(known=self._at is not None)
        return None


def _lines(name: str, file: BinaryIO) -> Iterator[Line]:
    number = 0
    while piece := file.readline(MAX_LINE):
        number += 1
        text = piece
        while piece and not piece.endswith(b"\n"):
            # The rest of one that is longer than any of ours: what is cut off fits no hash.
            piece = file.readline(MAX_LINE)
        line = text.removesuffix(b"\n")
        yield Line(
            place=Place(name, number),
            chained=chain.read(line),
            whole=chain.is_whole(line),
            numbered=b',"seq":' in line or b',"hash":"' in line,
            open=len(line) == len(text),
        )


def _open(path: Path, stack: ExitStack) -> BinaryIO | None:
    try:
        return stack.enter_context(open_to_read(path))
    except FileNotFoundError:
        return None


def _is_at(file: BinaryIO | None, path: Path) -> bool:
    try:
        there = path.lstat()
    except FileNotFoundError:
        return file is None
    return file is not None and os.path.samestat(there, os.fstat(file.fileno()))
