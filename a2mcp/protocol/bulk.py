"""How much a JSON text holds, found out before anything is made of it.

A decoder does not let go of the interpreter before it is done, and a body may have 128 MiB: as text that is a twentieth
of a second, as forty million empty objects three seconds and four gigabytes, in which nobody else is answered. So what
is large is first looked at piece by piece, which lets the others have their turns.
"""

from __future__ import annotations

import codecs
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_MEMBERS: Final = 250_000
"""Members and containers in one text: what a decoder makes in a fiftieth of a second."""

_PIECE: Final = 1 << 16
_FEWEST_BYTES: Final = 2
"""Of a text for each of its members: a digit and a comma."""


def is_too_much(text: bytes) -> bool:
    """Whether a JSON text has more members and containers than anybody has use for."""
    if len(text) <= MOST_MEMBERS * _FEWEST_BYTES:
        return False
    # PERF: the first count takes a tenth of the time, and is enough for nearly all there is.
    return _is_more(_signs(text)) and _is_more(_signs_outside_strings(text))


def check_utf8(text: bytes) -> None:
    """Refuse what is not UTF-8.

    Raises:
        UnicodeDecodeError: that.
    """
    if len(text) <= _PIECE:
        text.decode()
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for at in range(0, len(text), _PIECE):
        decoder.decode(text[at : at + _PIECE])
    decoder.decode(b"", final=True)


def _is_more(counts: Iterator[int]) -> bool:
    """Whether counts amount to more than ``MOST_MEMBERS``; the rest of them is not asked for then."""
    return any(found > MOST_MEMBERS for found in accumulate(counts))


def _signs(text: bytes) -> Iterator[int]:
    for at in range(0, len(text), _PIECE):
        yield _counted(text[at : at + _PIECE])


def _signs_outside_strings(text: bytes) -> Iterator[int]:
    at = 0
    inside = False
    while at < len(text):
        piece = _piece(text, at)
        at += len(piece)
        # Without what is escaped, each quote begins a string or ends one.
        parts = piece.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        yield _counted(b"".join(parts[inside::2]))
        inside ^= len(parts) % 2 == 0


def _counted(piece: bytes) -> int:
    """How many members and containers begin here."""
    return piece.count(b",") + piece.count(b"[") + piece.count(b"{")


def _piece(text: bytes, at: int) -> bytes:
    """The next piece, which does not end between a backslash and what it escapes."""
    piece = text[at : at + _PIECE]
    escapes = (len(piece) - len(piece.rstrip(b"\\"))) % 2
    return text[at : at + _PIECE + escapes]
