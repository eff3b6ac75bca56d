"""What ``glob`` and ``grep`` share: where to search, and how a path that was found is written."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from a2mcp.errors import ToolError
from a2mcp.host.paths import as_url, refusal, resolve, show

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.host.search_query import Tree
    from a2mcp.tools.context import Context


def tree_at(raw: str, context: Context, *, hidden: bool, gitignore: bool) -> Tree:
    """Make the tree that a caller's path stands for: a folder, or one regular file.

    Raises:
        ToolError: there is no such path, it may not be looked at, or it is a device, socket or pipe.
    """
    from a2mcp.host.search_query import Tree  # noqa: PLC0415 - not needed to list tools

    path = resolve(raw, context.cwd)
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise refusal("search", path, error) from error
    if stat.S_ISDIR(mode):
        return Tree(folder=path, hidden=hidden, gitignore=gitignore)
    if not stat.S_ISREG(mode):
        raise ToolError(f"Cannot search {show(path)}: it is neither a folder nor a regular file.")
    return Tree(folder=path.parent, name=path.name, hidden=hidden, gitignore=gitignore)


def shown(path: Path, context: Context) -> str:
    """Write a path so that it can be passed back: relative to the working directory where it lies below that.

    A name that does not fit on one line of text becomes a ``file://`` address.
    """
    short = str(path.relative_to(context.cwd) if path.is_relative_to(context.cwd) else path)
    return short if show(short) == short else as_url(path)
