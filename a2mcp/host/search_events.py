"""The messages of ``rg --json``, which the built-in searcher prints, too: from a stream of bytes to typed values.

Owns the format and the bound on one message: a line of a hundred megabytes is never held, only its place is kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LONGEST: Final = 1 << 20
_HEAD: Final = 64 * 1024
_AFTER_LINE: Final = b'},"line_number":'
"""Stands right behind the line's text. Cannot occur inside of it: there every quote has a backslash before it."""
_PLACE: Final = re.compile(rb'"line_number":(\d+),"absolute_offset":(\d+)')
_START: Final = re.compile(rb'"start":(\d+)')


class Raw(msgspec.Struct, frozen=True):
    """Bytes: as text where they are UTF-8, else as base64."""

    text: str | None = None
    base64: bytes | None = msgspec.field(name="bytes", default=None)

    def value(self) -> bytes:
        """Return the bytes themselves."""
        return self.base64 if self.base64 is not None else (self.text or "").encode()


class Span(msgspec.Struct, frozen=True):
    """One hit in a line."""

    start: int


class Stats(msgspec.Struct, frozen=True):
    """What the whole search came to."""

    searches: int = 0


class Data(msgspec.Struct, frozen=True):
    """The body of a message; which members are there depends on its type."""

    path: Raw | None = None
    lines: Raw | None = None
    """``None`` in a message about a line that was too long to hold."""
    line_number: int = 0
    absolute_offset: int = 0
    submatches: tuple[Span, ...] = ()
    stats: Stats | None = None

    @property
    def start(self) -> int:
        """The byte of the line where its first hit begins."""
        return self.submatches[0].start if self.submatches else 0


class Event(msgspec.Struct, frozen=True):
    """One message: ``begin`` and ``end`` of a file, ``match``, ``context``, or the ``summary``."""

    type: str
    data: Data


_decoder: Final = msgspec.json.Decoder(Event)


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Decode a stream of messages. A last one without its line end was cut off and is left out."""
    cutter = _Cutter()
    for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for piece in ends:
            cutter.add(piece)
            yield _decoder.decode(cutter.take())
        cutter.add(rest)


class _Cutter:
    """Collects one message. Of a long one it keeps the beginning, which has the path, and what follows the line."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._head = b""

    def add(self, piece: bytes) -> None:
        self._held += piece
        if len(self._held) > _LONGEST:
            self._shrink()

    def take(self) -> bytes:
        message = self._digest() if self._head else bytes(self._held)
        self._held, self._head = bytearray(), b""
        return message

    def _shrink(self) -> None:
        self._head = self._head or bytes(self._held[:_HEAD])
        at = self._held.find(_AFTER_LINE)
        if at < 0:
            del self._held[: -len(_AFTER_LINE)]
        else:
            self._held = self._held[at : at + _HEAD]

    def _digest(self) -> bytes:
        """Write the message again without its line."""
        after = bytes(self._held[max(0, self._held.find(_AFTER_LINE)) :])
        place, start = _PLACE.search(after), _START.search(after)
        numbers = b',"line_number":%b,"absolute_offset":%b' % (place.groups() if place else (b"0", b"0"))
        spans = b',"submatches":[{"start":%b}]}}' % (start[1] if start else b"0")
        return self._head.partition(b',"lines":')[0] + numbers + spans
