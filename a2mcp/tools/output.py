"""Keeping a tool's text within its cap: the middle goes, both ends stay, and the gap says what is missing.

Knows no tool: the caller says which call reads the missing part.
"""

from __future__ import annotations


def clip_middle(text: str, limit_bytes: int, *, read_with: str = "") -> str:
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
    note = _note(end - start, data.count(b"\n", start, end), read_with)
    return f"{_whole_line(head.decode())}{note}\n{data[end:].decode()}"


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


def _note(size: int, line_ends: int, read_with: str) -> str:
    how = f"; read it with {read_with}" if read_with else ""
    lines = f", {line_ends} line ends" if line_ends else ""
    return f"[… {human_size(size)}{lines} not shown here{how} …]"


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
