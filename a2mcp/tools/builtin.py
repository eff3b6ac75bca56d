"""The tools that every daemon starts with, in the order in which they are listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from a2mcp.tools.spec import AnyTool


def builtin_tools(names: Collection[str] | None = None) -> tuple[AnyTool, ...]:
    """Load the tools: those of these names, or all.

    They are imported here and not above, so that a command line verb pays for none of them.
    """
    from a2mcp.tools import bash, edit, glob, grep, jobs, read, write  # noqa: PLC0415 - see above

    every = (read.TOOL, write.TOOL, edit.TOOL, bash.TOOL, jobs.TOOL, glob.TOOL, grep.TOOL)
    return tuple(tool for tool in every if names is None or tool.spec.name in names)
