"""The ``glob`` tool: which files there are, newest first. Owns its words; ``a2mcp.host.search`` finds the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from a2mcp.errors import BadArgument
from a2mcp.host.paths import resolve
from a2mcp.tools.outputs import FLAG, NUMBER, TEXT, array, members
from a2mcp.tools.result import Outcome, text
from a2mcp.tools.schema import spec_for
from a2mcp.tools.searching import shown, tree_at
from a2mcp.tools.spec import Tier, Tool

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.host.search_query import FoundFiles
    from a2mcp.tools.context import Context


class GlobParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which files, and where."""

    pattern: Annotated[
        str,
        Meta(
            description="Glob with *, ?, [a-z], {a,b} and **. Without a slash it matches names at any depth ('*.py'); "
            "with one, the path below `path` ('src/**/*.py')."
        ),
    ]
    path: Annotated[str, Meta(description="Folder to look in; default: the working directory.")] = "."
    hidden: Annotated[bool, Meta(description="Include names that begin with a dot.")] = True
    gitignore: Annotated[bool, Meta(description="Leave out what .gitignore names, and .git itself.")] = True
    limit: Annotated[int, Meta(ge=1, le=10_000, description="Most files to return.")] = 200


def run(params: GlobParams, context: Context) -> Outcome:
    """List the files."""
    from a2mcp.host.globs import split_base  # noqa: PLC0415 - not needed to list tools
    from a2mcp.host.search import find_files  # noqa: PLC0415 - starts processes
    from a2mcp.host.search_query import Files, FoundFiles  # noqa: PLC0415 - belongs to the above

    if not params.pattern.strip("/"):
        raise BadArgument("pattern", "a glob", f"'{params.pattern}'", hint="For example '**/*.py'; '*' is every file.")
    tree = tree_at(params.path, context, hidden=params.hidden, gitignore=params.gitignore)
    if tree.name:
        raise BadArgument("path", "a folder", "a file", hint="Use grep or read for one file.")
    base, pattern = split_base(params.pattern)
    folder = resolve(base, tree.folder, field="pattern") if base else tree.folder
    if not folder.is_dir():
        found = FoundFiles(paths=(), total=0, notes=(f"There is no folder {shown(folder, context)}.",))
        return _result(found, folder, context)
    query = Files(
        tree=msgspec.structs.replace(tree, folder=folder), pattern=pattern, anchored=bool(base), limit=params.limit
    )
    return _result(find_files(query, cancelled=context.cancelled), folder, context)


def _result(found: FoundFiles, folder: Path, context: Context) -> Outcome:
    files = _fitting([shown(folder / path, context) for path in found.paths], context.limits.output_bytes)
    truncated = len(files) < found.total
    summary = _summary(len(files), found.total, full=len(files) < len(found.paths))
    lines = [*files, *([""] if files else []), summary, *found.notes]
    data = {"files": files, "total": found.total, "truncated": truncated, "notes": list(found.notes)}
    return text("\n".join(lines), structured=data)


def _fitting(files: list[str], room: int) -> list[str]:
    """Keep as many of the first as there is room for."""
    for kept, file in enumerate(files):
        room -= len(file.encode()) + 1
        if room < 0:
            return files[:kept]
    return files


def _summary(shown_count: int, total: int, *, full: bool) -> str:
    if not total:
        return "No files."
    if shown_count < total:
        how = "Narrow path or pattern" if full else "Raise limit, or narrow path or pattern,"
        return f"Newest {shown_count} of {total} files shown. {how} for the others."
    return f"{total} {'file' if total == 1 else 'files'}, newest first."


TOOL: Final = Tool(
    spec=spec_for(
        GlobParams,
        name="glob",
        title="Find files",
        description="List files whose path matches a glob, newest first. Folders and links are not listed; hidden "
        "files are, unless hidden is false.",
        tier=Tier.READ,
        idempotent=True,
        output_schema=members(files=array(TEXT), total=NUMBER, truncated=FLAG, notes=array(TEXT)),
    ),
    params=GlobParams,
    run=run,
)
