"""Numbered lines within a cap: both ends of a selection, and a note in the gap that names the call for the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

_LINE: Final = 8 * 1024
"""Characters of one line; a longer one is cut in its middle."""
_AT_ONCE: Final = 256


class Numbered(msgspec.Struct, frozen=True, kw_only=True):
    """Lines ready to be shown."""

    body: str
    shown: str
    """Which lines, in words: ``lines 1-20``, ``lines 1-90 and 300-400``."""
    first: int
    last: int


def number(lines: list[str], first: int, limit_bytes: int, shown_path: str) -> Numbered:
    """Number the lines from ``first`` on and keep about ``limit_bytes`` of them.

    Args:
        lines: without line ends.
        first: number of the first one; negative for lines counted from the end of a file.
        limit_bytes: bytes of UTF-8 to keep.
        shown_path: the file's name, for the note about what is missing.
    """
    last = first + len(lines) - 1
    if not lines:
        return Numbered(body="", shown="lines 0-0", first=0, last=0)
    # A line takes more than a byte: more lines than bytes cannot all be shown.
    body = _whole(lines, first) if len(lines) <= limit_bytes else ""
    if body and (len(body) * 4 <= min(_LINE, limit_bytes) or _fits(body, lines, limit_bytes)):
        return Numbered(body=body, shown=_span(first, last), first=first, last=last)
    head = _take(lines, first, 1, limit_bytes - limit_bytes // 2, shown_path)
    rest = lines[len(head) :]
    tail = _take(rest[::-1], last, -1, limit_bytes // 2, shown_path)[::-1]
    missing = len(lines) - len(head) - len(tail)
    if not missing:
        return Numbered(body="\n".join(head + tail), shown=_span(first, last), first=first, last=last)
    start = first + len(head)
    note = (
        f"[… {missing} lines not shown here; read them with"
        f' {{"path": "{shown_path}", "offset": {start}, "limit": {missing}}} …]'
    )
    parts = [_span(first, start - 1)] + ([f"{start + missing}-{last}"] if tail else [])
    return Numbered(body="\n".join([*head, note, *tail]), shown=" and ".join(parts), first=first, last=last)


def _whole(lines: list[str], first: int) -> str:
    """All the lines, numbered.

    PERF: some at a time, because the rows of a long file take five times its memory, and many may be read at once.
    """
    if len(lines) <= _AT_ONCE:
        return "\n".join([f"{at}\t{line}" for at, line in enumerate(lines, first)])
    starts = range(0, len(lines), _AT_ONCE)
    return "\n".join([_whole(lines[start : start + _AT_ONCE], first + start) for start in starts])


def _fits(body: str, lines: Iterable[str], limit_bytes: int) -> bool:
    return len(body.encode()) <= limit_bytes and max(map(len, lines)) <= _LINE


def _span(first: int, last: int) -> str:
    return f"lines {first}-{last}" if last >= first else "lines 0-0"


def _take(lines: list[str], at: int, step: int, room: int, shown_path: str) -> list[str]:
    """Rows until the room is used up. The first row is always taken, cut to the room if it must be."""
    rows: list[str] = []
    for line in lines:
        row = f"{at}\t{_clipped(line, min(_LINE, room // 4), at, shown_path)}"
        size = len(row.encode()) + 1
        if rows and size > room:
            break
        rows.append(row)
        room -= size
        at += step
        if room <= 0:
            break
    return rows


def _clipped(line: str, width: int, at: int, shown_path: str) -> str:
    if len(line) <= max(width, 80):
        return line
    half = max(width, 80) // 2
    # Counted from the end of a file, the line has no number that sed knows.
    how = f"; bash: sed -n {at}p {_quoted(shown_path)} | cut -c{half + 1}-" if at > 0 else ""
    return f"{line[:half]}[… {len(line) - 2 * half} characters of this line not shown{how} …]{line[-half:]}"


def _quoted(path: str) -> str:
    import shlex  # noqa: PLC0415 - only for a line that is cut

    return shlex.quote(path)
