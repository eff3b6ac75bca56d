"""A few lines of a file too large to read whole, found by scanning for line ends from either end, within a bound."""

from __future__ import annotations

import os
from typing import Final

import msgspec

SCANNED: Final = 64 * 1024 * 1024
"""Bytes looked through for the first line wanted."""
_PIECE: Final = 1 << 20


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that begin at the beginning of a line."""

    data: bytes
    start: int
    """Offset in the file."""


def from_line(descriptor: int, line: int, size: int) -> Window | None:
    """Up to ``size`` bytes from the beginning of a line, counted from 1; None when it lies beyond what is scanned."""
    start = _offset_of(descriptor, line - 1)
    return None if start is None else Window(data=_at(descriptor, start, size), start=start)


def from_end(descriptor: int, lines: int, length: int, size: int) -> Window | None:
    """Up to ``size`` bytes from the beginning of the last ``lines`` lines; None when that lies beyond what is scanned.

    Args:
        descriptor: the open file.
        lines: how many lines from the end.
        length: the length of the file.
        size: bytes to read.
    """
    end = length
    # A line end that closes the file begins no line.
    if _at(descriptor, length - 1, 1) == b"\n":
        end -= 1
    start = _backwards(descriptor, lines, end, max(0, length - SCANNED))
    return None if start is None else Window(data=_at(descriptor, start, size), start=start)


def _at(descriptor: int, offset: int, size: int) -> bytes:
    return os.pread(descriptor, size, offset)


def _offset_of(descriptor: int, skipped: int) -> int | None:
    """Where the line begins that has ``skipped`` line ends before it."""
    offset = 0
    while skipped and offset < SCANNED:
        piece = _at(descriptor, offset, _PIECE)
        if not piece:
            return None
        count = piece.count(b"\n")
        if count >= skipped:
            return offset + _nth(piece, skipped) + 1
        skipped -= count
        offset += len(piece)
    return None if skipped else offset


def _nth(piece: bytes, wanted: int) -> int:
    at = -1
    for _ in range(wanted):
        at = piece.index(b"\n", at + 1)
    return at


def _backwards(descriptor: int, lines: int, end: int, floor: int) -> int | None:
    while end > floor:
        begin = max(floor, end - _PIECE)
        piece = _at(descriptor, begin, end - begin)
        count = piece.count(b"\n")
        if count >= lines:
            return begin + _nth(piece, count - lines + 1) + 1
        lines -= count
        end = begin
    return None if floor else 0
