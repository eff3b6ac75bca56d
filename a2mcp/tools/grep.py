"""The ``grep`` tool: which lines of which files match. Owns its words; ``a2mcp.host.search`` finds the lines."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from a2mcp.errors import BadArgument
from a2mcp.tools.outputs import FLAG, NUMBER, TEXT, array, members
from a2mcp.tools.result import Outcome, text
from a2mcp.tools.schema import spec_for
from a2mcp.tools.searching import shown, tree_at
from a2mcp.tools.spec import Tier, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2mcp.host.search_query import FoundLines, Line
    from a2mcp.tools.context import Context
    from a2mcp.types import JsonObject

LONGEST: Final = 10_000
"""Characters of a pattern; the kernel takes 128 KiB for one argument."""
_PROGRESS_S: Final = 1.0


class GrepParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to search for, and where."""

    pattern: Annotated[
        str,
        Meta(
            description="Regular expression (Rust syntax; look-around and back-references work, too), "
            "matched line by line."
        ),
    ]
    path: Annotated[str, Meta(description="Folder or file to search; default: the working directory.")] = "."
    glob: Annotated[
        str | None,
        Meta(
            description="Only files that match this glob: '*.py' by name, 'src/**/*.{js,ts}' by path below `path`, "
            "'!*.min.js' for all others."
        ),
    ] = None
    literal: Annotated[bool, Meta(description="Take the pattern as plain text.")] = False
    case: Annotated[bool, Meta(description="Upper and lower case differ; false ignores it.")] = True
    context: Annotated[int, Meta(ge=0, le=50, description="Lines to show before and after each match.")] = 0
    limit: Annotated[int, Meta(ge=1, le=10_000, description="Most matching lines to return.")] = 100
    gitignore: Annotated[bool, Meta(description="Leave out what .gitignore names, and .git itself.")] = True


def run(params: GrepParams, context: Context) -> Outcome:
    """Search and write the hits grouped by file."""
    from a2mcp.host.search import find_lines  # noqa: PLC0415 - starts processes; not needed to list tools
    from a2mcp.host.search_query import Lines  # noqa: PLC0415 - belongs to the above

    _require_pattern(params.pattern)
    tree = tree_at(params.path, context, hidden=True, gitignore=params.gitignore)
    query = Lines(
        tree=tree,
        pattern=params.pattern,
        glob="" if tree.name else params.glob or "",
        literal=params.literal,
        case=params.case,
        context=params.context,
        limit=params.limit,
        room=context.limits.output_bytes,
    )
    found = find_lines(query, cancelled=context.cancelled, progress=_progress(context))
    paths = {line.path: shown(tree.folder / line.path, context) for line in found.lines}
    return text(_report(found, paths, params.limit), structured=_structured(found, paths))


def _progress(context: Context) -> Callable[[int], None] | None:
    """How the search tells where it is: at most once in ``_PROGRESS_S``, and not at all where nobody wants to know."""
    if not context.tell.wants_progress:
        return None
    due = context.clock.monotonic() + _PROGRESS_S

    def tell(files: int) -> None:
        nonlocal due
        now = context.clock.monotonic()
        if now >= due:
            due = now + _PROGRESS_S
            context.tell.progress(files, None, f"{_count(files, 'file', 'files')} with matches so far")

    return tell


def _require_pattern(pattern: str) -> None:
    problems = {
        "an empty string": not pattern,
        f"{len(pattern)} characters": len(pattern) > LONGEST,
        "one with a line break": "\n" in pattern,
        "one with a NUL": "\0" in pattern,
        "one with a lone surrogate": any("\ud800" <= char <= "\udfff" for char in pattern),
    }
    for received in (name for name, present in problems.items() if present):
        expected = f"a pattern of 1 to {LONGEST} characters for one line"
        raise BadArgument("pattern", expected, received, hint="Lines are matched one by one; search for one of them.")


def _report(found: FoundLines, paths: dict[str, str], limit: int) -> str:
    parts = [
        f"{paths[path]}\n{_rows(list(lines))}" for path, lines in itertools.groupby(found.lines, lambda line: line.path)
    ]
    return "\n\n".join([*parts, "\n".join([_summary(found, len(parts), limit), *found.notes])])


def _rows(lines: Sequence[Line]) -> str:
    rows = []
    previous = lines[0].number
    for line in lines:
        if line.number > previous + 1 and any(each.column is None for each in lines):
            rows.append("--")
        previous = line.number
        rows.append(
            f"{line.number}-  {line.text}" if line.column is None else f"{line.number}:{line.column}: {line.text}"
        )
    return "\n".join(rows)


def _summary(found: FoundLines, files: int, limit: int) -> str:
    hits = sum(line.column is not None for line in found.lines)
    if found.truncated:
        shown_hits = _count(hits, "match", "matches")
        # Where the room was used up, a higher limit would show no more.
        how = "Raise limit, or narrow" if hits >= limit else "Narrow"
        return f"First {shown_hits} shown; there are more. {how} path, glob or pattern."
    if not hits:
        return "No matches." if found.searched is None else f"No matches in {_count(found.searched, 'file', 'files')}."
    return f"{_count(hits, 'match', 'matches')} in {_count(files, 'file', 'files')}."


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _structured(found: FoundLines, paths: dict[str, str]) -> JsonObject:
    matches = [
        {"path": paths[line.path], "line": line.number, "column": line.column, "text": line.text}
        for line in found.lines
        if line.column is not None
    ]
    data: JsonObject = {"matches": matches, "truncated": found.truncated, "notes": list(found.notes)}
    return data if found.searched is None else data | {"filesSearched": found.searched}


TOOL: Final = Tool(
    spec=spec_for(
        GrepParams,
        name="grep",
        title="Search in files",
        description="Find lines that match a regular expression, below a folder or in one file. Answers with "
        "line:column: text under each file's path; long lines are clipped around the match. Hidden files are searched, "
        "binary files and links are not.",
        tier=Tier.READ,
        idempotent=True,
        output_schema=members(
            "filesSearched",
            matches=array(members(path=TEXT, line=NUMBER, column=NUMBER, text=TEXT)),
            truncated=FLAG,
            notes=array(TEXT),
            filesSearched=NUMBER,
        ),
    ),
    params=GrepParams,
    run=run,
)
