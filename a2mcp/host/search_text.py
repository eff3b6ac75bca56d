"""How a line of any bytes becomes text that is short and hides nothing.

Owns clipping, escapes and columns. Knows no search program.
"""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

WIDEST: Final = 400
"""Characters shown of a line."""
_BEFORE: Final = 120
"""Characters shown before the hit where a line is clipped."""
_BLOCK: Final = 1 << 20

_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(9), *range(10, 32), *range(127, 160))}
_CONTINUATION: Final = bytes(range(0x80, 0xC0))


def clip(raw: bytes, start: int) -> tuple[int, str]:
    """Return the column of byte ``start``, in characters from 1, and the part of the line around it."""
    line = raw.rstrip(b"\r\n")
    before, after = line[:start], line[start:]
    return len(before.decode(errors="replace")) + 1, _around(_decode(before), _decode(after))


def clip_in_file(path: Path, offset: int, start: int) -> tuple[int, str]:
    """Do what ``clip`` does for a line that is too long to hold: it begins at ``offset`` in the file.

    Raises:
        OSError: the file cannot be read any more.
    """
    with path.open("rb") as file:
        if file.read(2) in {BOM_UTF16_LE, BOM_UTF16_BE}:
            return start + 1, "(a very long line of UTF-16, which is not shown)"  # offsets are those of its UTF-8
        file.seek(offset)
        column = 1
        left = start
        while block := file.read(min(_BLOCK, left)):
            column += len(block.translate(None, _CONTINUATION))
            left -= len(block)
        lead = min(start, 4 * _BEFORE)
        file.seek(offset + start - lead)
        before, after = file.read(lead), file.read(4 * WIDEST).partition(b"\n")[0]
    return column, _around(_decode(before.lstrip(_CONTINUATION)), _decode(after))


def _decode(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")


def _around(before: str, after: str) -> str:
    if len(before) + len(after) <= WIDEST:
        return (before + after).translate(_CONTROLS)
    left = before if len(before) <= _BEFORE else "…" + before[-_BEFORE:]
    room = WIDEST - len(left)
    right = after if len(after) <= room else after[:room] + "…"
    return (left + right).translate(_CONTROLS)
