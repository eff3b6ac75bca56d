"""The ``Range`` header to pieces of a file, few and never more than twice the file (RFC 9110 §14). Knows no file."""

from __future__ import annotations

from typing import Final

import msgspec

MOST: Final = 64
"""Ranges beyond which the header is ignored, as §14.2 allows."""
_DIGITS: Final = 18
_BEYOND: Final = 10**_DIGITS
"""Stands for every number with more digits: no file is that large."""


class Range(msgspec.Struct, frozen=True):
    """A piece of a file."""

    start: int
    length: int

    @property
    def end(self) -> int:
        """The first byte after it."""
        return self.start + self.length


class Unsatisfiable(Exception):
    """No byte of the file is asked for, or what is asked for cannot be read."""


def parse(header: str | None, size: int) -> tuple[Range, ...]:
    """Read a header.

    Ranges that touch or overlap become one, so that no byte is sent twice; the order is that of the first of each.

    Returns:
        The pieces; none where the whole file is the answer.

    Raises:
        Unsatisfiable: answered with 416.
    """
    unit, equals, specs = (header or "").partition("=")
    if unit.strip().lower() != "bytes" or not equals:
        return ()
    texts = [text.strip() for text in specs.split(",") if text.strip()]
    if len(texts) > MOST:
        return ()
    found = [piece for text in texts if (piece := _one(text, size)) is not None]
    if not found:
        raise Unsatisfiable
    return _merged(found)


def _one(text: str, size: int) -> Range | None:
    """One range; None where it lies behind the end."""
    first, dash, last = (part.strip() for part in text.partition("-"))
    if not dash or not (first or last) or not all(_is_number(part) for part in (first, last) if part):
        raise Unsatisfiable
    if not first:
        length = min(_number(last), size)
        return Range(size - length, length) if length else None
    start = _number(first)
    end = min(_number(last), size - 1) if last else size - 1
    if last and _number(last) < start:
        raise Unsatisfiable
    return Range(start, end - start + 1) if start < size else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _number(digits: str) -> int:
    """Read a number of any length; ``int`` alone would refuse 4,300 digits."""
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= _DIGITS else _BEYOND


def _merged(pieces: list[Range]) -> tuple[Range, ...]:
    order: dict[Range, int] = {}
    merged: list[Range] = []
    for piece in sorted(pieces, key=lambda found: found.start):
        if merged and piece.start <= merged[-1].end:
            before = merged.pop()
            piece = Range(before.start, max(before.end, piece.end) - before.start)  # noqa: PLW2901  # It grew.
        merged.append(piece)
    for index, asked in enumerate(pieces):
        holder = next(piece for piece in merged if piece.start <= asked.start < piece.end)
        order.setdefault(holder, index)
    return tuple(sorted(merged, key=lambda piece: order[piece]))
