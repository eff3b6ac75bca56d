r"""Literal replacements in a text: where they match, what they may touch, and the new text.

Matching happens in a view in which every line end is ``\n``; the changes are then made in the text itself, so that a
line end, or anything else outside a change, stays as it is. Every edit is matched against the text as it was before all
of them. Knows nothing of files and charsets.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.errors import BadArgument, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LINES_NAMED: Final = 10


class Replacement(msgspec.Struct, frozen=True):
    """What the caller asks for: one place, or every place, of ``old`` becomes ``new``."""

    old: str
    new: str
    all: bool = False


class Splice(msgspec.Struct, frozen=True):
    """One change: the characters from ``start`` up to ``end`` of the view become ``new``."""

    start: int
    end: int
    new: str
    edit: int
    """Which of the caller's edits it belongs to."""


class View:
    r"""A text with every line end written as ``\n``, and the way from an offset in it to the text itself.

    A lone CR is a line end only in a text that has no LF; elsewhere it is a character like any other.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.text = source
        self._pairs: list[int] = []
        self._single = "\n"
        if "\r" not in source:
            return
        if "\n" not in source:
            self._single = "\r"
            self.text = source.replace("\r", "\n")
            return
        self.text = source.replace("\r\n", "\n")
        at = source.find("\r\n")
        while at >= 0:
            self._pairs.append(at - len(self._pairs))
            at = source.find("\r\n", at + 2)

    def origin(self, offset: int) -> int:
        """Where an offset of the view lies in the text."""
        return offset + bisect_left(self._pairs, offset)

    def line_of(self, offset: int) -> int:
        """The number of the line that holds the offset, from 1."""
        return self.text.count("\n", 0, offset) + 1

    def ending(self, offset: int) -> str:
        """How the line end at this offset of the view is written in the text."""
        index = bisect_left(self._pairs, offset)
        return "\r\n" if index < len(self._pairs) and self._pairs[index] == offset else self._single

    def endings_for(self, start: int, end: int, count: int) -> list[str]:
        """Line ends for ``count`` new lines put in place of this span.

        They take the span's own ends in order, then go on with the last of them; a span without any takes the end of
        its line, or of the line before.
        """
        found = [self.ending(start + at) for at, char in enumerate(self.text[start:end]) if char == "\n"][:count]
        if not found:
            near = self.text.find("\n", end)
            near = near if near >= 0 else self.text.rfind("\n", 0, start)
            found = [self.ending(near) if near >= 0 else self._single]
        return found + found[-1:] * (count - len(found))


def plan(view: View, replacements: Sequence[Replacement], shown: str) -> list[Splice]:
    """Find every place the replacements touch, in the order of the text.

    Args:
        view: the text before.
        replacements: what the caller asks for.
        shown: the file's name for the error texts.

    Raises:
        BadArgument: an edit is empty or changes nothing.
        ToolError: an edit matches nowhere, in several places, or overlaps another one.
    """
    found: list[tuple[int, int, Splice]] = []
    for number, wanted in enumerate(replacements):
        old, new = _normal(wanted.old, view), _normal(wanted.new, view)
        _require_change(number, old, new)
        head, tail = _alike(old, new)
        kept = new[head : len(new) - tail]
        for at in _places(view, old, number, shown, every=wanted.all):
            end = at + len(old)
            found.append((at, end, Splice(at + head, end - tail, kept, number)))
    found.sort(key=lambda place: (place[2].start, place[2].end, place[0]))
    for (left_start, left_end, left), (right_start, right_end, right) in pairwise(found):
        # Two edits may share context; what they change must be apart.
        if right_start < left_end and left_start < right_end and right.start <= left.end:
            raise ToolError(
                f"edits[{left.edit}] and edits[{right.edit}] change the same text of {shown}; nothing was changed.",
                hint="Join them into one edit.",
            )
    return [splice for _, _, splice in found]


def apply(view: View, splices: Iterable[Splice]) -> str:
    """The new text, with the line ends of the old one."""
    parts: list[str] = []
    done = 0
    for splice in splices:
        parts.append(view.source[done : view.origin(splice.start)])
        parts.append(_with_endings(view, splice))
        done = view.origin(splice.end)
    parts.append(view.source[done:])
    return "".join(parts)


def apply_to_view(view: View, splices: Iterable[Splice]) -> str:
    r"""The new text as a view: every line end ``\n``."""
    parts: list[str] = []
    done = 0
    for splice in splices:
        parts += (view.text[done : splice.start], splice.new)
        done = splice.end
    parts.append(view.text[done:])
    return "".join(parts)


def _normal(text: str, view: View) -> str:
    text = text.replace("\r\n", "\n")
    return text.replace("\r", "\n") if view.text != view.source and "\n" not in view.source else text


def _require_change(number: int, old: str, new: str) -> None:
    if not old:
        raise BadArgument(
            f"edits[{number}].oldText",
            "text that is in the file",
            "an empty string",
            hint="To add text, put the line beside it in oldText; to make a file, call write.",
        )
    if old == new:
        raise BadArgument(f"edits[{number}].newText", "text other than oldText", "the same text")


def _places(view: View, old: str, number: int, shown: str, *, every: bool) -> list[int]:
    found = _occurrences(view.text, old, step=len(old) if every else 1)
    if not found:
        from a2mcp.host.nearest import nearest  # noqa: PLC0415 - loads difflib, which only a miss needs

        raise ToolError(
            f"edits[{number}].oldText is not in {shown}; nothing was changed. {nearest(view.text, old)}\n",
            hint="oldText must be the file's own text, without line numbers, as it is before all edits of this call.",
        )
    if len(found) > 1 and not every:
        lines = ", ".join(str(view.line_of(at)) for at in found[:_LINES_NAMED])
        more = ", …" if len(found) > _LINES_NAMED else ""
        raise ToolError(
            f"edits[{number}].oldText is in {shown} {len(found)} times, on lines {lines}{more}; nothing was changed.",
            hint='Put more of the surrounding text into oldText, or set "all": true to change every place.',
        )
    return found


def _occurrences(text: str, old: str, *, step: int) -> list[int]:
    found: list[int] = []
    at = text.find(old)
    while at >= 0:
        found.append(at)
        at = text.find(old, at + step)
    return found


def _alike(old: str, new: str) -> tuple[int, int]:
    """How much old and new begin and end with alike: those characters are not touched and keep even their line ends."""
    room = min(len(old), len(new))
    head = _common(old, new, room)
    return head, _common(old[::-1], new[::-1], room - head)


def _common(left: str, right: str, room: int) -> int:
    for at in range(room):
        if left[at] != right[at]:
            return at
    return room


def _with_endings(view: View, splice: Splice) -> str:
    count = splice.new.count("\n")
    if not count:
        return splice.new
    lines = splice.new.split("\n")
    ends = view.endings_for(splice.start, splice.end, count)
    return "".join(line + end for line, end in zip(lines, [*ends, ""], strict=True))
