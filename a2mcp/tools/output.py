"""Keeping a tool's text within its cap: the middle goes, both ends stay, and the gap says what is missing.

Knows no tool: the caller says which call reads the missing part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """What was left out. Offsets are into the UTF-8 form of the text that was cut."""

    first_byte: int
    """Offset of the first byte that is missing, from 0."""
    size: int
    """Bytes missing."""
    first_line: int
    """Number of the line in which the gap begins, from 1."""
    lines: int
    """Line ends missing."""


def clip_middle(text: str, limit_bytes: int, *, read_with: Callable[[Gap], str] | None = None) -> str:
    """Cut ``text`` to about ``limit_bytes`` of UTF-8 by leaving out its middle.

    Cuts at line ends where one is near, else between characters. The note in the gap comes on top of the limit.

    Args:
        text: what may be too long; returned as it is when it fits.
        limit_bytes: bytes of it to keep.
        read_with: names the call that reads the missing part, for example ``'jobs output offset=900'``.
    """
    # One character is at most four bytes: most texts are known to fit without being encoded.
    if len(text) * 4 <= limit_bytes:
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= limit_bytes:
        return text
    start = _head_end(data, limit_bytes - limit_bytes // 2)
    end = _tail_start(data, max(start, len(data) - limit_bytes // 2))
    head = data[:start]
    gap = Gap(
        first_byte=start,
        size=end - start,
        first_line=head.count(b"\n") + 1,
        lines=data.count(b"\n", start, end),
    )
    return f"{_whole_line(head.decode())}{_note(gap, read_with)}\n{data[end:].decode()}"


def human_size(size: int) -> str:
    """Write a number of bytes for a person: ``812 bytes``, ``1.5 KiB``, ``2.0 GiB``."""
    if size < 1024:
        return f"{size} bytes"
    scaled = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        scaled /= 1024
        if scaled < 1024:
            return f"{scaled:.1f} {unit}"
    return f"{scaled / 1024:.1f} EiB"


def _note(gap: Gap, read_with: Callable[[Gap], str] | None) -> str:
    how = f"; read it with {read_with(gap)}" if read_with else ""
    lines = f", {gap.lines} line ends" if gap.lines else ""
    return f"[… {human_size(gap.size)}{lines} not shown here{how} …]"


def _whole_line(head: str) -> str:
    return head if not head or head.endswith("\n") else head + "\n"


def _head_end(data: bytes, wanted: int) -> int:
    """The last line end in the last quarter before ``wanted``, else the last character boundary."""
    newline = data.rfind(b"\n", wanted - wanted // 4, wanted)
    return newline + 1 if newline >= 0 else _boundary(data, wanted, -1)


def _tail_start(data: bytes, wanted: int) -> int:
    newline = data.find(b"\n", wanted, wanted + (len(data) - wanted) // 4)
    return newline + 1 if newline >= 0 else _boundary(data, wanted, 1)


def _boundary(data: bytes, at: int, step: int) -> int:
    while 0 < at < len(data) and data[at] & 0xC0 == 0x80:
        at += step
    return at
