"""Searching files: by ripgrep where there is one, else by the built-in searcher; both as a child with a deadline.

Owns how output becomes an answer, and the bounds: hits, bytes, seconds. A caller's pattern never meets Python's ``re``
in this process.
"""

from __future__ import annotations

import heapq
import os
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from a2mcp.errors import BadArgument, ToolError
from a2mcp.host import ripgrep, search_fallback
from a2mcp.host.globs import Globs
from a2mcp.host.paths import show
from a2mcp.host.search_child import End, SearchChild
from a2mcp.host.search_events import Data, Event, events
from a2mcp.host.search_query import Files, FoundFiles, FoundLines, Line, Lines
from a2mcp.host.search_text import clip, clip_in_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    Progress = Callable[[int], None]

SECONDS: Final = 20.0
"""Time for one search."""
_WRONG_PATTERN: Final = ("regex parse error", "compiled regex", "error compiling", "is not allowed in a regex")
_NEEDS_PCRE2: Final = ("look-around", "backreferences are")
_SHOWN: Final = 200
_Engine = Literal["default", "pcre2", "built-in"]


def find_lines(
    query: Lines, *, cancelled: Callable[[], bool], seconds: float = SECONDS, progress: Progress | None = None
) -> FoundLines:
    """Find lines; partly, with a note saying so, when time is over.

    ``progress`` is told, whenever a file has been searched in which there was something, how many those are.

    Raises:
        BadArgument: the pattern or the glob is wrong.
        ToolError: the search could not be run.
    """
    globs = _globs("glob", query.glob) if query.glob else None
    rg = ripgrep.find()
    if rg is None:
        return _lines(search_fallback.argv(query), query, globs, _Run("built-in", seconds, cancelled, progress))
    names = globs.names() if globs else []
    try:
        return _lines(
            ripgrep.lines_argv(rg, query, names=names, lookaround=False),
            query,
            globs,
            _Run("default", seconds, cancelled, progress),
        )
    except _NeedsPcre2:
        return _lines(
            ripgrep.lines_argv(rg, query, names=names, lookaround=True),
            query,
            globs,
            _Run("pcre2", seconds, cancelled, progress),
        )


def find_files(query: Files, *, cancelled: Callable[[], bool], seconds: float = SECONDS) -> FoundFiles:
    """Find files, newest first; partly, with a note saying so, when time is over.

    Raises:
        BadArgument: the pattern is wrong.
        ToolError: the search could not be run.
    """
    globs = _globs("pattern", query.pattern, anchored=query.anchored)
    rg = ripgrep.find()
    run = _Run("default" if rg else "built-in", seconds, cancelled)
    argv = ripgrep.files_argv(rg, query, names=globs.names()) if rg else search_fallback.argv(query)
    with run.start(argv, query.tree.folder) as child:
        wanted = _Sieve(globs, hidden=query.tree.hidden)
        newest = heapq.nsmallest(query.limit, _dated(query.tree.folder, wanted.of(_names(child.chunks()))))
    return FoundFiles(paths=tuple(path for _, path in newest), total=wanted.count, notes=run.notes(child, "files"))


_TOO_EXPENSIVE: Final = "match limit exceeded"
"""PCRE2's words for giving a pattern up."""


class _NeedsPcre2(Exception):
    """The pattern has look-around or back-references, which the default engine lacks."""


class _Run:
    """How a child is run, and what is to be said about how it went."""

    def __init__(
        self, engine: _Engine, seconds: float, cancelled: Callable[[], bool], progress: Progress | None = None
    ) -> None:
        self.engine = engine
        self.progress = progress
        self._seconds = seconds
        self._cancelled = cancelled

    def start(self, argv: list[str], folder: Path) -> SearchChild:
        try:
            return SearchChild(argv, folder, seconds=self._seconds, cancelled=self._cancelled)
        except OSError as error:
            raise ToolError(f"The search could not be started: {error.strerror}.") from error

    def notes(self, child: SearchChild, what: str) -> tuple[str, ...]:
        said = []
        if child.end is End.DEADLINE:
            said.append(f"Stopped after {self._seconds:g} s: {what} that were not reached by then are missing.")
        if child.end is End.CANCELLED:
            said.append("Stopped because the call was cancelled.")
        too_expensive = [complaint for complaint in child.complaints if _TOO_EXPENSIVE in complaint]
        if too_expensive:
            first = show(too_expensive[0].removeprefix("rg: ").partition(": ")[0])
            said.append(
                f"The pattern takes too long to decide in {len(too_expensive)} of the files, first {first}: whether it "
                "matches there is not known. Make it simpler."
            )
        elif child.complaints:
            count, first = len(child.complaints), show(child.complaints[0].removeprefix("rg: "))
            said.append(f"{count} {'path' if count == 1 else 'paths'} could not be searched, first {first}")
        if self.engine == "built-in":
            said.append("ripgrep is not installed here: the slower built-in search with Python's patterns was used.")
        return tuple(said)


def _lines(argv: list[str], query: Lines, globs: Globs | None, run: _Run) -> FoundLines:
    taken = _Taken(query, globs, run.progress)
    with run.start(argv, query.tree.folder) as child:
        for event in events(child.chunks()):
            if not taken.take(event):
                break
    if child.complete and taken.searched is None and not taken.lines:
        _refuse(query.pattern, "\n".join(child.complaints), run.engine)
    return FoundLines(
        lines=tuple(sorted(taken.lines, key=lambda line: line.path)),
        truncated=taken.full,
        # Ripgrep 13, which distributions still have, says 0 also of files in which it found nothing.
        searched=taken.searched or None,
        notes=run.notes(child, "lines"),
    )


class _Taken:
    """The lines taken so far."""

    def __init__(self, query: Lines, globs: Globs | None, progress: Progress | None) -> None:
        self._query = query
        self._progress = progress
        self._files = 0
        self._globs = globs
        self._wanted = True
        self._hits = 0
        self._room = query.room
        self.lines: list[Line] = []
        self.full = False
        self.searched: int | None = None

    def take(self, event: Event) -> bool:
        """Take what is wanted of a message; false means that nothing more is."""
        data = event.data
        if event.type == "begin":
            self._wanted = self._globs is None or self._globs.matches(_path(data))
            self._found_file()
        elif event.type == "summary":
            self.searched = data.stats.searches if data.stats else 0
        elif event.type in {"match", "context"} and self._wanted:
            return self._line(data, hit=event.type == "match")
        return True

    def _found_file(self) -> None:
        if self._progress is not None and self._wanted:
            self._files += 1
            self._progress(self._files)

    def _line(self, data: Data, *, hit: bool) -> bool:
        self._hits += hit
        line = _clipped(data, self._query.tree.folder, hit=hit)
        self._room -= len(line.text.encode()) + 16
        self.full = self._hits > self._query.limit or (self._room < 0 and bool(self.lines))
        if not self.full:
            self.lines.append(line)
        return not self.full


class _Sieve:
    """Keeps the paths that are wanted and counts them."""

    def __init__(self, globs: Globs, *, hidden: bool) -> None:
        self._globs = globs
        self._hidden = hidden
        self.count = 0

    def of(self, paths: Iterable[str]) -> Iterator[str]:
        for path in paths:
            # NOTE: ripgrep shows a hidden file whose name the coarse sieve asked for.
            if self._globs.matches(path) and (self._hidden or not f"/{path}".count("/.")):
                self.count += 1
                yield path


def _globs(field: str, pattern: str, *, anchored: bool = False) -> Globs:
    try:
        return Globs(pattern, anchored=anchored)
    except ValueError as error:
        raise BadArgument(
            field, "a glob", f"{pattern[:_SHOWN]!r}: {error}", hint="For example '**/*.{js,ts}'."
        ) from None


def _path(data: Data) -> str:
    return os.fsdecode(data.path.value() if data.path else b"").removeprefix("./")


def _clipped(data: Data, folder: Path, *, hit: bool) -> Line:
    path = _path(data)
    if data.lines is not None:
        column, text = clip(data.lines.value(), data.start)
    else:
        try:
            column, text = clip_in_file(folder / path, data.absolute_offset, data.start)
        except OSError:
            column, text = data.start + 1, "(a long line of a file that cannot be read any more)"
    return Line(path, data.line_number, column if hit else None, text)


def _names(chunks: Iterable[bytes]) -> Iterator[str]:
    """Cut a stream into names, each ended by NUL."""
    held = b""
    for chunk in chunks:
        *names, held = (held + chunk).split(b"\0")
        for name in names:
            yield os.fsdecode(name).removeprefix("./")


def _dated(folder: Path, paths: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Pair each path with its negative time of change; one that is gone by now counts as oldest."""
    for path in paths:
        try:
            yield -os.stat(f"{folder}/{path}", follow_symlinks=False).st_mtime_ns, path  # noqa: PTH116 - PERF: text
        except OSError:
            yield 0, path


def _refuse(pattern: str, said: str, engine: _Engine) -> NoReturn:
    """Turn the words of a searcher that did not search into an error."""
    if engine == "pcre2" and "PCRE2 is not available" in said:
        what = "a pattern without look-around and back-references"
        raise BadArgument(
            "pattern", what, repr(pattern[:_SHOWN]), hint="This machine's ripgrep is built without PCRE2."
        )
    if engine == "default" and any(mark in said for mark in _NEEDS_PCRE2):
        raise _NeedsPcre2
    if any(mark in said for mark in _WRONG_PATTERN):
        hint = "Set literal to true to search for the text as it stands. A pattern is matched line by line."
        raise BadArgument("pattern", "a regular expression", f"{pattern[:_SHOWN]!r}: {_reason(said)}", hint=hint)
    raise ToolError("The search ended without an answer.", hint=said[:_SHOWN] or "Its memory may have been used up.")


def _reason(said: str) -> str:
    """Pick the sentence that says what is wrong from a complaint of several lines."""
    rows = said.splitlines()
    named = [row for row in rows if row.startswith("error: ")]
    return (named or rows)[0].removeprefix("rg: ").removeprefix("error: ").rstrip(".")
