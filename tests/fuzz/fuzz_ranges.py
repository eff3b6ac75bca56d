"""The header ``Range``: the pieces are of the file, each byte once, and those that RFC 9110 §14.1 has where it is met.

The first line of an input is the size of the file, the rest is the header.
"""

from __future__ import annotations

import re
from itertools import pairwise

from a2mcp.xfer.ranges import MOST, Range, Unsatisfiable, parse

_GRAMMAR = re.compile(r"bytes=([0-9]+-[0-9]*|-[0-9]+)(?:[ \t]*,[ \t]*([0-9]+-[0-9]*|-[0-9]+))*", re.IGNORECASE)
_SMALL = 1000


def check(data: bytes) -> None:
    """Fail unless the header is read as it should be for a file of this size."""
    first, _, rest = data.partition(b"\n")
    size = int(first) if first.isdigit() and len(first) < 15 else len(first)
    header = rest.decode("latin-1")
    try:
        pieces = parse(header, size)
    except Unsatisfiable:
        pieces = None
    if pieces:
        _are_of_the_file(pieces, size)
    if size <= _SMALL and _GRAMMAR.fullmatch(header):
        _are_those_asked_for(pieces, header, size)


def _are_of_the_file(pieces: tuple[Range, ...], size: int) -> None:
    assert len(pieces) <= MOST
    assert all(0 <= piece.start < piece.end <= size for piece in pieces)
    ordered = sorted(pieces, key=lambda piece: piece.start)
    assert all(one.end < other.start for one, other in pairwise(ordered)), "they touch"


def _are_those_asked_for(pieces: tuple[Range, ...] | None, header: str, size: int) -> None:
    specs = [spec.strip(" \t") for spec in header.partition("=")[2].split(",")]
    if len(specs) > MOST:
        assert pieces == ()
        return
    asked = [_bytes_of(spec, size) for spec in specs]
    if any(found is None for found in asked) or not any(asked):
        assert pieces is None
        return
    assert pieces
    assert {byte for piece in pieces for byte in range(piece.start, piece.end)} == set().union(
        *(each or () for each in asked)
    )
    firsts = [
        next(n for n, each in enumerate(asked) if each and piece.start <= each[0] < piece.end) for piece in pieces
    ]
    assert firsts == sorted(firsts)


def _bytes_of(spec: str, size: int) -> range | None:
    """The positions that one range names; None where it runs backwards."""
    first, _, last = spec.partition("-")
    if not first:
        return range(max(0, size - _int(last)), size)
    if last and _int(last) < _int(first):
        return None
    return range(min(_int(first), size), min(_int(last) + 1, size) if last else size)


def _int(digits: str) -> int:
    """A position; beyond 18 digits, where no file is, all are one."""
    return int(digits) if len(digits.lstrip("0")) <= 18 else 10**18
