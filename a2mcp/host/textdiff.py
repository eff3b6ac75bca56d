"""A unified diff made from changes that are known, so that its cost is that of the changes and not of the file."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2mcp.host.textedit import Splice

_CONTEXT: Final = 3
_COMPARED: Final = 300
"""Lines of a changed region up to which its lines are compared; a larger one is shown as taken out and put in."""
_NO_NEWLINE: Final = "\n\\ No newline at end of file"


class _Change(msgspec.Struct, frozen=True):
    """Lines ``[a0, a1)`` of the old text became lines ``[b0, b1)`` of the new one."""

    a0: int
    a1: int
    b0: int
    b1: int


def unified(before: str, after: str, splices: Iterable[Splice], label: str) -> str:
    r"""Write the changes as a unified diff with three lines of context.

    Args:
        before: the old text, line ends ``\n``.
        after: the new text, likewise.
        splices: the changes that lead from one to the other, in order.
        label: the file's name.
    """
    old, new = _lines(before), _lines(after)
    changes = [part for region in _regions(before, splices, len(old), len(new)) for part in _refined(old, new, region)]
    out = [f"--- {label}", f"+++ {label}"]
    for group in _groups(changes):
        out += _hunk(old, new, group)
    return "\n".join(out)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += _NO_NEWLINE
    else:
        lines.pop()
    return lines


def _regions(before: str, splices: Iterable[Splice], old_total: int, new_total: int) -> list[_Change]:
    """The lines each change lies on, those that share a line joined."""
    regions: list[_Change] = []
    line = seen = shift = 0
    for splice in splices:
        line += before.count("\n", seen, splice.start)
        gone = before.count("\n", splice.start, splice.end)
        grown = splice.new.count("\n") - gone
        a0, a1 = line, min(line + gone + 1, old_total)
        b0, b1 = line + shift, min(line + gone + 1 + shift + grown, new_total)
        if regions and regions[-1].a1 >= a0:
            last = regions.pop()
            a0, b0 = last.a0, last.b0
        regions.append(_Change(a0, a1, b0, b1))
        line, seen, shift = line + gone, splice.end, shift + grown
    return regions


def _refined(old: list[str], new: list[str], region: _Change) -> Iterator[_Change]:
    """The parts of a region that really differ."""
    a, b = old[region.a0 : region.a1], new[region.b0 : region.b1]
    if len(a) > _COMPARED or len(b) > _COMPARED:
        yield region
        return
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _Change(region.a0 + a0, region.a0 + a1, region.b0 + b0, region.b0 + b1)


def _groups(changes: list[_Change]) -> Iterator[list[_Change]]:
    group: list[_Change] = []
    for change in changes:
        if group and change.a0 - group[-1].a1 > 2 * _CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(old: list[str], new: list[str], group: list[_Change]) -> list[str]:
    first, last = group[0], group[-1]
    lead = min(_CONTEXT, first.a0)
    trail = min(_CONTEXT, len(old) - last.a1)
    out = [f"@@ -{_range(first.a0 - lead, last.a1 + trail)} +{_range(first.b0 - lead, last.b1 + trail)} @@"]
    at = first.a0 - lead
    for change in group:
        out += [f" {line}" for line in old[at : change.a0]]
        out += [f"-{line}" for line in old[change.a0 : change.a1]]
        out += [f"+{line}" for line in new[change.b0 : change.b1]]
        at = change.a1
    return out + [f" {line}" for line in old[at : at + trail]]


def _range(start: int, end: int) -> str:
    size = end - start
    # Counting from 1; an empty range names the line before it.
    return f"{start + 1 if size else start}" + ("" if size == 1 else f",{size}")
