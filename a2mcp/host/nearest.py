"""The text a caller probably meant, when the one they gave is not there.

Bounded work whatever the sizes: lines are compared as wholes first, then by words, and only a few of them by character.
"""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import Final

_WIDTH: Final = 400
_WINDOW: Final = 40
_TRIED: Final = 40
_SCANNED: Final = 2_000
_DIFFERENCES: Final = 3
_COMPARED: Final = 6
_COMPARED_WIDTH: Final = 120
_ALIKE_ENOUGH: Final = 0.5
_WORD: Final = re.compile(r"\w+")


def nearest(text: str, wanted: str) -> str:
    r"""Describe the place of ``text`` most like ``wanted`` and how they differ, or return an empty string.

    Args:
        text: what was searched, with ``\n`` line ends.
        wanted: what is not in it.
    """
    have = text.split("\n")
    want = wanted.split("\n")
    while len(want) > 1 and not want[-1]:
        want.pop()
    want = want[:_WINDOW]
    start = _start(have, want)
    if start is None:
        return "Nothing in it is like it."
    found = have[start : start + len(want)]
    alike = _alike(want, found)
    if alike < _ALIKE_ENOUGH:
        return "Nothing in it is like it."
    where = f"line {start + 1}" if len(found) == 1 else f"lines {start + 1}-{start + len(found)}"
    return f"The nearest text is at {where}, {min(99, int(alike * 100))} % alike:\n{_differences(want, found, start)}"


def visible(text: str) -> str:
    """Quote a line so that what cannot be seen can be: tabs, control characters, unusual spaces."""
    return '"' + "".join(char if char == " " or char.isprintable() else _named(char) for char in text) + '"'


def _named(char: str) -> str:
    return {"\t": "\\t", "\r": "\\r"}.get(char, f"\\u{ord(char):04x}")


def _start(have: list[str], want: list[str]) -> int | None:
    """The line at which the best window begins."""
    votes = _votes(have, want)
    if votes:
        starts = [start for start, _ in votes.most_common(5)]
    else:
        index = max(range(len(want)), key=lambda at: len(want[at].strip()))
        starts = [max(0, line - index) for line in _likely_lines(have, want[index])]
    starts = [start for start in starts if start < len(have)]
    if not starts:
        return None
    return max(starts, key=lambda at: (_roughly(want, have[at : at + len(want)]), -at))


def _votes(have: list[str], want: list[str]) -> Counter[int]:
    """Window starts, weighed by the characters of the lines they would get right but for their margins."""
    places: dict[str, list[int]] = {}
    for index, line in enumerate(want):
        if key := line.strip():
            places.setdefault(key, []).append(index)
    votes: Counter[int] = Counter()
    for number, line in enumerate(have):
        for index in places.get(line.strip(), ()):
            votes[max(0, number - index)] += len(line.strip())
    return votes


def _likely_lines(have: list[str], line: str) -> list[int]:
    """Lines that share words with ``line``, or look like it when none does."""
    words = set(_WORD.findall(line[:_WIDTH]))
    scores = Counter[int]()
    for number, other in enumerate(have):
        if shared := words.intersection(_WORD.findall(other[:_WIDTH])):
            scores[number] = sum(map(len, shared))
    likely = [number for number, _ in scores.most_common(_TRIED)]
    return likely or _looking_alike(have, line[:_WIDTH])


def _looking_alike(have: list[str], line: str) -> list[int]:
    matcher = SequenceMatcher(None, "", line, autojunk=False)
    scores = Counter[int]()
    for number, other in enumerate(islice(have, _SCANNED)):
        matcher.set_seq1(other[:_WIDTH])
        if matcher.real_quick_ratio() >= _ALIKE_ENOUGH and (score := matcher.quick_ratio()) >= _ALIKE_ENOUGH:
            scores[number] = int(score * 1000)
    return [number for number, _ in scores.most_common(_TRIED)]


def _roughly(want: list[str], found: list[str]) -> float:
    """How alike two windows are, letters counted without their order: cheap enough for every candidate."""
    pairs = zip(want, found, strict=False)
    return sum(len(a) * (a == b or _matcher(a, b).quick_ratio()) for a, b in pairs)


def _alike(want: list[str], found: list[str]) -> float:
    """How alike two windows are, from 0 to 1, each line weighed by its length."""
    total = same = 0.0
    compared = 0
    for line, other in zip_longest(want, found[: len(want)], fillvalue=""):
        weight = max(len(line), len(other), 1)
        total += weight
        if line == other:
            same += weight
            continue
        # PERF: the true ratio takes the cube of the length in the worst case, so few lines get it.
        compared += 1
        matcher = _matcher(line, other)
        same += weight * (matcher.ratio() if compared <= _COMPARED else matcher.quick_ratio())
    return same / total


def _matcher(left: str, right: str) -> SequenceMatcher[str]:
    return SequenceMatcher(None, left[:_COMPARED_WIDTH], right[:_COMPARED_WIDTH], autojunk=False)


def _differences(want: list[str], found: list[str], start: int) -> str:
    said: list[str] = []
    for offset, line in enumerate(want):
        other = found[offset] if offset < len(found) else None
        if line != other and len(said) < _DIFFERENCES:
            said.append(_difference(line, other, start + offset + 1))
    return "\n".join(said) or "The lines are the same; oldText goes on after them where the file does not."


def _difference(line: str, other: str | None, number: int) -> str:
    if other is None:
        return f"  line {number}: oldText has {visible(line[:_WIDTH])}, the file has ended"
    at = next((at for at, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), min(len(line), len(other)))
    begin = max(0, at - 60)
    mine, theirs = line[begin : at + 100], other[begin : at + 100]
    return (
        f"  line {number}, from column {at + 1}: oldText has {_point(line, at)}, the file has {_point(other, at)}\n"
        f"    oldText: {visible(mine)}\n"
        f"    file:    {visible(theirs)}"
    )


def _point(line: str, at: int) -> str:
    return f"{visible(line[at])} (U+{ord(line[at]):04X})" if at < len(line) else "the end of the line"
