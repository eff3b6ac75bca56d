"""Reading the log back: both generations, paired, filtered, followed.

Owns how lines become records and records become calls. Does not know how they are shown. A line that is torn or not a
record is passed over; memory stays bounded whatever the files hold.
"""

import io
import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from a2mcp.audit.journal import previous
from a2mcp.audit.record import Record

MAX_LINE = 16 * 1024
"""Bytes of a line that are looked at; our own have less than 3 KB."""
MAX_OPEN = 4096
"""Calls whose end is waited for while reading; with more, the oldest is given out as unfinished."""

_CHUNK = 64 * 1024
_decode = msgspec.json.Decoder(Record).decode


class Call(msgspec.Struct, frozen=True):
    """The two records of a call, one of which may be missing: not written yet, never written, or rotated away.

    An event, which has one record only, is a call without a start.
    """

    start: Record | None
    done: Record | None

    @property
    def record(self) -> Record:
        """The last thing known of it."""
        record = self.done or self.start
        if record is None:
            raise ValueError("a call has at least one record")
        return record

    @property
    def seconds(self) -> float | None:
        """How long it took, when both records are there."""
        if self.start is None or self.done is None:
            return None
        try:
            return (datetime.fromisoformat(self.done.ts) - datetime.fromisoformat(self.start.ts)).total_seconds()
        except (ValueError, TypeError):
            return None


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which records are asked for; what is None does not matter."""

    tool: str | None = None
    session: str | None = None
    """The id of a session, or its beginning."""
    phase: str | None = None
    """``start`` or ``done``; of a call, the phase of the last thing known of it."""

    def takes(self, record: Record) -> bool:
        """Whether the record is asked for."""
        return (
            self.tool in (None, record.tool)
            and (self.session is None or (record.sid or "").startswith(self.session))
            and self.phase in (None, record.phase)
        )


ALL = Filter()


def records(path: Path, wanted: Filter = ALL) -> Iterator[Record]:
    """The records of both generations, oldest first; none if no file is there.

    Raises:
        OSError: there is a log that cannot be read.
    """
    with ExitStack() as stack:
        # The current file is opened first: a rotation in between then shows one file twice, which can be seen, and
        # not a gap, which cannot.
        current = _open(path)
        if current is not None:
            stack.enter_context(current)
        older = _open(previous(path))
        if older is not None:
            stack.enter_context(older)
            if current is None or not _same(older, current):
                yield from _parse(_lines(older), wanted)
        if current is not None:
            yield from _parse(_lines(current), wanted)


def calls(path: Path, wanted: Filter = ALL) -> Iterator[Call]:
    """The calls in the order in which they ended, then those that never did, in the order of their start.

    Raises:
        OSError: there is a log that cannot be read.
    """
    return (call for call in _paired(records(path)) if wanted.takes(call.record))


def unfinished(path: Path, wanted: Filter = ALL) -> Iterator[Call]:
    """The calls that started and of which no end is known: still running, waiting for approval, or lost to a crash.

    Raises:
        OSError: there is a log that cannot be read.
    """
    return (call for call in calls(path, wanted) if call.done is None)


def follow(path: Path, wait: Callable[[], bool], wanted: Filter = ALL) -> Iterator[Record]:
    """The records that are written from now on, through rotations and through times without a log.

    What came and was rotated away again between two waits is not seen.

    Args:
        path: the log.
        wait: is called when there is nothing new; ends the iteration by answering False.
        wanted: which records to give out.

    Raises:
        OSError: there is a log that cannot be read.
    """
    yield from _parse(_followed(path, wait), wanted)


def _open(path: Path) -> BinaryIO | None:
    try:
        file: BinaryIO = open(path, "rb", buffering=0, opener=_opener)  # noqa: SIM115 - given to the caller
    except (FileNotFoundError, IsADirectoryError):
        return None
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    return None


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)


def _same(one: BinaryIO, other: BinaryIO) -> bool:
    return os.path.samestat(os.fstat(one.fileno()), os.fstat(other.fileno()))


class _Tail:
    """The lines of a file, or of no file, up to where it ends now."""

    def __init__(self, file: BinaryIO | None) -> None:
        self._file = file
        self.begun = b""
        """What follows the last line break."""

    def skip(self) -> None:
        """Leave out what is there already."""
        if self._file is not None:
            self._file.seek(0, io.SEEK_END)

    def lines(self) -> Iterator[bytes]:
        """The lines that are new and whole; after the file was cut, all of them."""
        if self._file is None:
            return
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            self.begun = b""
        while chunk := self._file.read(_CHUNK):
            *lines, begun = (self.begun + chunk).split(b"\n")
            self.begun = begun[:MAX_LINE]
            yield from lines

    def has_moved(self, path: Path) -> bool:
        """Whether another file is at the path."""
        try:
            there = path.stat()
        except FileNotFoundError:
            return False
        return self._file is None or not os.path.samestat(there, os.fstat(self._file.fileno()))

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()


def _lines(file: BinaryIO) -> Iterator[bytes]:
    tail = _Tail(file)
    yield from tail.lines()
    yield tail.begun


def _parse(lines: Iterable[bytes], wanted: Filter) -> Iterator[Record]:
    for line in lines:
        try:
            line.decode()  # the decoder does not look into ``args``
            record = _decode(line)
        except (ValueError, RecursionError):
            continue
        if wanted.takes(record):
            yield record


def _paired(found: Iterable[Record]) -> Iterator[Call]:
    begun: OrderedDict[str, Record] = OrderedDict()
    for record in found:
        if record.phase == "done":
            yield Call(begun.pop(record.id, None), record)
            continue
        begun[record.id] = record
        if len(begun) > MAX_OPEN:
            yield Call(begun.popitem(last=False)[1], None)
    for start in begun.values():
        yield Call(start, None)


def _followed(path: Path, wait: Callable[[], bool]) -> Iterator[bytes]:
    tail = _Tail(_open(path))
    try:
        tail.skip()
        while True:
            # Asked before the rest is read: what is written to the file before it is moved is then still read.
            moved = tail.has_moved(path)
            yield from tail.lines()
            successor = _open(path) if moved else None
            if successor is not None:
                tail.close()
                tail = _Tail(successor)
            elif not wait():
                return
    finally:
        tail.close()
