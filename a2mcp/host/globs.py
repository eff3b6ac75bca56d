"""Glob patterns over relative paths: ``*``, ``?``, ``[…]``, ``{a,b}``, ``**``, a leading ``!`` for "not".

Owns what a pattern means, whichever program lists the files. Knows no file system. Needed beside ripgrep's own
``--glob``, because that overrides ``.gitignore`` and the rule about hidden files for whatever it matches.

SECURITY: a pattern cannot take exponential time. Segments are matched with ``fnmatch.translate``, whose expressions
hold one atomic group per ``*``; segments against path parts with a greedy walk; braces expand to a bounded number.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LONGEST: Final = 1000
"""Characters of a pattern; longer ones are refused."""
MOST_ALTERNATIVES: Final = 256
"""Patterns that the braces of one may stand for."""

_DEEP: Final = "**"
_ESCAPE_OR_SPECIAL: Final = re.compile(r"\\(.)", re.DOTALL)
_PLAIN: Final = re.compile(r"[^\\\[\]{}:!]+")


class Globs:
    """One pattern, ready to match.

    Args:
        pattern: without a slash it is about names at any depth; with one it is about the whole relative path.
        anchored: take a pattern without a slash to be about the whole path, too.

    Raises:
        ValueError: the pattern is empty, too long, has a character that no name has, or a brace without its other; the
            text says which.
    """

    def __init__(self, pattern: str, *, anchored: bool = False) -> None:
        if len(pattern) > LONGEST:
            raise ValueError(f"a pattern has at most {LONGEST} characters")
        if "\0" in pattern or any("\ud800" <= char <= "\udfff" for char in pattern):
            raise ValueError("NUL and lone surrogates occur in no file name")
        self._negative = pattern.startswith("!")
        alternatives = _expanded(pattern.removeprefix("!"))
        self._paths = [_segments(each, anchored=anchored) for each in alternatives]
        self._compiled = [[_part(segment) for segment in path] for path in self._paths]

    def matches(self, path: str) -> bool:
        """Say whether a relative path, parts joined by ``/``, is meant."""
        parts = path.split("/")
        return any(_meant(segments, parts) for segments in self._compiled) is not self._negative

    def names(self) -> list[str]:
        """Give globs over file names alone that every match fulfils, for a coarse sieve; empty if there are none."""
        last = [path[-1] for path in self._paths]
        sieve = not self._negative and all(_PLAIN.fullmatch(name) and name not in {"*", _DEEP} for name in last)
        return last if sieve else []


def split_base(pattern: str) -> tuple[str, str]:
    """Cut the leading folders that hold no wildcard from a pattern: ``src/a/**/*.py`` → ``src/a``, ``**/*.py``."""
    folders = pattern.split("/")[:-1]
    fixed = list(itertools.takewhile(lambda folder: not set(folder) & set("*?[{\\!"), folders))
    base = "/".join(fixed)
    return (base or "/" if fixed else ""), "/".join(pattern.split("/")[len(fixed) :]) or _DEEP


def _expanded(pattern: str) -> list[str]:
    found = list(itertools.islice(_expand(pattern), MOST_ALTERNATIVES + 1))
    if len(found) > MOST_ALTERNATIVES:
        raise ValueError(f"the braces stand for more than {MOST_ALTERNATIVES} patterns")
    if not all(each.strip("/") for each in found):
        raise ValueError("a pattern must not be empty")
    return found


def _expand(pattern: str) -> Iterator[str]:
    start, end, commas = _braces(pattern)
    if start < 0:
        yield pattern
        return
    edges = [start, *commas, end]
    for left, right in itertools.pairwise(edges):
        for rest in _expand(pattern[left + 1 : right] + pattern[end + 1 :]):
            yield pattern[:start] + rest


def _braces(pattern: str) -> tuple[int, int, list[int]]:
    """Find the first pair of braces and its own commas; ``-1`` if there is none."""
    depth, start, commas, skip = 0, -1, [], False
    for at, char in enumerate(pattern):
        if skip or char == "\\":
            skip = not skip
        elif char == "{":
            depth += 1
            start = at if depth == 1 else start
        elif char == "," and depth == 1:
            commas.append(at)
        elif char == "}" and depth:
            depth -= 1
            if not depth:
                return start, at, commas
    if depth:
        raise ValueError("a '{' has no '}' (write '\\{' for the character)")
    return -1, -1, []


def _segments(pattern: str, *, anchored: bool) -> list[str]:
    segments = [part for part in pattern.split("/") if part not in {"", "."}]
    if pattern.endswith("/"):
        segments.append(_DEEP)
    if not segments:
        return [_DEEP]  # Of "." and "./." nothing is left: the folder itself, which means all that is in it.
    return segments if anchored or "/" in pattern else [_DEEP, *segments]


def _part(segment: str) -> Callable[[str], object] | str:
    if segment == _DEEP:
        return _DEEP
    quoted = _ESCAPE_OR_SPECIAL.sub(lambda hit: f"[{hit[1]}]" if hit[1] in "*?[" else hit[1], segment)
    return re.compile(fnmatch.translate(quoted.replace("[^", "[!"))).match


def _meant(segments: Sequence[Callable[[str], object] | str], parts: Sequence[str]) -> bool:
    if len(segments) == 2 and segments[0] == _DEEP and callable(segments[1]):
        return segments[1](parts[-1]) is not None  # PERF: a name at any depth, which most patterns are
    return _walk(segments, parts)


def _walk(segments: Sequence[Callable[[str], object] | str], parts: Sequence[str]) -> bool:
    """Match greedily: only the last ``**`` seen can usefully take one part more, so nothing is tried twice."""
    at = here = 0
    deep, resume = -1, 0
    while here < len(parts):
        segment = segments[at] if at < len(segments) else ""
        if segment == _DEEP:
            deep, resume = at, here
            at += 1
        elif not isinstance(segment, str) and segment(parts[here]):
            at, here = at + 1, here + 1
        elif deep >= 0:
            resume += 1
            at, here = deep + 1, resume
        else:
            return False
    return all(segment == _DEEP for segment in segments[at:])
