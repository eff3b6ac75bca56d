"""Bytes of a program's output into text for a reader: UTF-8 with bad bytes shown, control sequences applied or removed.

Knows nothing of commands. What is left contains no control character but tab and newline.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[P\]X^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # OSC, DCS, SOS, PM, APC: titles, links
    r"|\x1b[ -/]*[0-~]"  # everything shorter: charsets, save, reset
)
_ERASE: Final = re.compile(r"\x1b\[([0-2]?)K")
_TO_END: Final = "\x01"
_WHOLE: Final = "\x02"
"""Stand-ins for "erase to the end of the line" and "erase the line"; such characters in the input are removed first."""

_STRAY: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STRAY_BUT_STEERING: Final = re.compile(r"[\x00\x03-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_STAND_INS: Final = str.maketrans("", "", "\x01\x02")
_OVERSTRUCK: Final = re.compile(r"[^\n\x08]\x08")
_UNFINISHED: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*|[P\]X^_][^\x07\x1b\n]{0,4096}\x1b?|[ -/]*)?\Z|\r\Z",
)
_CONTINUATION: Final = bytes(range(0x80, 0xC0))
_LONGEST_CHARACTER: Final = 4


def decoder() -> codecs.IncrementalDecoder:
    """Make a decoder that never splits a character between two pieces and shows each bad byte as U+FFFD."""
    return codecs.getincrementaldecoder("utf-8")("replace")


def decode(data: bytes, *, cut_before: bool = False, cut_after: bool = False) -> str:
    """Decode a piece of output; a character that the cut at either end split is left out.

    Args:
        data: raw output.
        cut_before: the piece does not begin where the output began.
        cut_after: the output goes on behind the piece.
    """
    if cut_before:
        lead = data[: _LONGEST_CHARACTER - 1]
        data = data[len(lead) - len(lead.lstrip(_CONTINUATION)) :]
    return decoder().decode(data) if cut_after else data.decode("utf-8", "replace")


def page(data: bytes, *, last: bool) -> tuple[str, int]:
    """Turn a page of output into clean text.

    Returns:
        The text and how many bytes it stands for. Unless this is the last page, an unfinished character or control
        sequence at the end is left to the next one.
    """
    if last:
        return clean(decode(data)), len(data)
    steps = decoder()
    raw = steps.decode(data)
    used = len(data) - len(steps.getstate()[0])
    rest = _UNFINISHED.search(raw)
    if rest is None or rest.start() == 0:
        return (clean(raw), used) if used else (clean(decode(data)), len(data))
    # Looked for among the bytes: one that is no text is more than one once it is shown.
    lead, cut = rest.group()[0], used
    for _ in range(rest.group().count(lead)):
        cut = data.rfind(lead.encode(), 0, cut)
    return clean(raw[: rest.start()]), cut


def clean(text: str) -> str:
    """Apply carriage returns, backspaces and line erasure as a terminal would; remove every other control sequence."""
    if "\x1b" not in text and not _STRAY.search(text):
        return text
    text = text.translate(_STAND_INS).replace("\r\n", "\n")
    text = _ERASE.sub(lambda match: _TO_END if match[1] in ("", "0") else _WHOLE, text)
    text = _STRAY_BUT_STEERING.sub("", _SEQUENCE.sub("", text))
    text = _OVERSTRUCK.sub("", text)
    if "\r" in text or _TO_END in text or _WHOLE in text:
        text = "\n".join(map(_overwritten, text.split("\n")))
    return _STRAY.sub("", text)


def _overwritten(line: str) -> str:
    """Return what a terminal shows of a line that returned to its beginning, as progress bars do."""
    if "\r" not in line:
        return line
    shown = ""
    for stretch in line.split("\r"):
        column = 0
        for piece in re.split(f"([{_TO_END}{_WHOLE}])", stretch):
            if piece == _TO_END:
                shown = shown[:column]
            elif piece == _WHOLE:
                shown = " " * column
            else:
                shown = shown[:column] + piece + shown[column + len(piece) :]
                column += len(piece)
    return shown.rstrip(" ")
