"""What it means that a line of the log does not fit: altered, removed, inserted or reordered.

Owns the reasoning from numbers and hashes, which names the first line that is not as it was. Reads nothing itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from a2mcp.audit.chain import START, Chained, Link

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind = Literal["altered", "removed", "inserted", "reordered"]


class Place(msgspec.Struct, frozen=True):
    """A line of a file; the first is 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was read."""

    place: Place
    chained: Chained | None
    """What it says of its place; None when that is nothing."""
    whole: bool
    """Whether it is more than what a crash leaves of a line."""
    numbered: bool
    """Whether it looks as if it had a place."""
    open: bool
    """Whether it has no line break, as the last line of a file may: torn, or not written to its end yet."""


class Fault(msgspec.Struct, frozen=True):
    """The first line that is not as it was written; of records that were removed, the line they stood before."""

    file: str
    line: int
    kind: Kind
    text: str

    @classmethod
    def at(cls, place: Place, kind: Kind, text: str) -> Fault:
        """Name a line."""
        return cls(place.file, place.line, kind, text)


class Diagnosis(msgspec.Struct, frozen=True):
    """What is known around a line that does not follow the one before it."""

    before: Link
    """The last record that fits."""
    odd: Sequence[Line]
    """Lines without a place between that and the line."""
    ahead: Sequence[Line]
    """Lines with a place behind it."""
    earlier: Mapping[int, tuple[bytes, Place]]
    """Hash and place of records up to the one before, by their number."""

    def has(self, chained: Chained) -> bool:
        """Whether the same record stands before."""
        return self.earlier.get(chained.seq, (b"", None))[0] == chained.hash

    def missing_ahead(self) -> Line | None:
        """The record that should stand here, where it stands instead."""
        wanted, digest = self.before.seq + 1, self.before.hash
        return next((line for line in self.ahead if _is(line, wanted) and _follows(line, digest)), None)

    def next_follows(self, digest: bytes) -> bool:
        """Whether the next line goes on from this hash."""
        return bool(self.ahead) and _follows(self.ahead[0], digest)

    def hash_ahead(self, seq: int) -> bytes | None:
        """The hash of a record that comes later."""
        found = next((line.chained for line in self.ahead if _is(line, seq)), None)
        return None if found is None else found.hash


def fault_at(line: Line, chained: Chained, known: Diagnosis) -> Fault:
    """Say what became of the log at a line that does not follow the one before it."""
    if known.odd and chained.seq > known.before.seq + 1:
        return stands_in(known.odd[0], known.before.seq + 1)
    odd = next((each for each in known.odd if each.whole or chained.prev is None), None)
    if odd is not None:
        return Fault.at(odd.place, "inserted", "It has no hash, and something else behind it was changed, too.")
    if chained.prev is not None and chained.follows(chained.prev):
        return _whole_but_alone(line, chained, known)
    if chained.seq > known.before.seq + 1:
        return _too_early(line, chained, known)
    if chained.seq == known.before.seq + 1:
        return _in_its_place(line, chained, known)
    return _too_late(line, chained, known)


def stands_in(odd: Line, seq: int) -> Fault:
    """Say that a line without a place is in that of a record."""
    return Fault.at(odd.place, "altered", f"It stands where record {seq} was, and has no hash that fits.")


def _whole_but_alone(line: Line, chained: Chained, known: Diagnosis) -> Fault:
    """It names the hash before it, which is another."""
    if chained.prev == START.hash and not known.has(chained):
        text = f"A new chain begins here: what followed record {known.before.seq} is not there."
        return Fault.at(line.place, "removed", text)
    if chained.seq > known.before.seq + 1:
        return _too_early(line, chained, known)
    if chained.seq == known.before.seq + 1 and known.before.seq in known.earlier:
        place = known.earlier[known.before.seq][1]
        return Fault.at(place, "altered", f"Record {chained.seq} followed another record {known.before.seq}.")
    return _too_late(line, chained, known)


def _too_early(line: Line, chained: Chained, known: Diagnosis) -> Fault:
    wanted = known.before.seq + 1
    missing = known.missing_ahead()
    if missing is None:
        if chained.numbered(wanted).follows(known.before.hash):
            return Fault.at(line.place, "altered", f"It is record {wanted}, with another number.")
        return _removed(line, chained, known)
    before = known.hash_ahead(chained.seq - 1)
    if before is not None and chained.follows(before):
        text = f"Record {chained.seq} stands where record {wanted} was, which is at {missing.place}."
        return Fault.at(line.place, "reordered", text)
    return _inserted(line, known)


def _in_its_place(line: Line, chained: Chained, known: Diagnosis) -> Fault:
    if known.next_follows(known.before.hash):
        return _inserted(line, known)
    before = known.earlier.get(known.before.seq)
    or_else = f" Or {before[1]} was, together with its hash." if before else ""
    return Fault.at(line.place, "altered", f"Record {chained.seq} does not fit its hash.{or_else}")


def _too_late(line: Line, chained: Chained, known: Diagnosis) -> Fault:
    _, place = known.earlier.get(chained.seq, (None, None))
    if known.has(chained):
        return Fault.at(line.place, "inserted", f"It is a copy of record {chained.seq}, which is at {place}.")
    before, _ = known.earlier.get(chained.seq - 1, (None, None))
    if before is not None and chained.follows(before) and place is not None:
        text = f"Record {chained.seq}, which follows what is before it, is at {line.place}."
        return Fault.at(place, "inserted", text)
    if known.next_follows(known.before.hash):
        return _inserted(line, known)
    return Fault.at(line.place, "altered", f"Record {known.before.seq + 1} was here; its number is now {chained.seq}.")


def _removed(line: Line, chained: Chained, known: Diagnosis) -> Fault:
    first, last = known.before.seq + 1, chained.seq - 1
    what = f"Record {last} is" if first == last else f"{last - first + 1} records, {first} to {last}, are"
    return Fault.at(line.place, "removed", f"{what} not there, and stood before this line.")


def _inserted(line: Line, known: Diagnosis) -> Fault:
    return Fault.at(line.place, "inserted", f"The next line, not this one, follows record {known.before.seq}.")


def _is(line: Line, seq: int) -> bool:
    return line.chained is not None and line.chained.seq == seq


def _follows(line: Line, digest: bytes) -> bool:
    return line.chained is not None and line.chained.follows(digest)
