"""The tools that every daemon starts with, in the order in which they are listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2mcp.tools.spec import AnyTool


def builtin_tools() -> tuple[AnyTool, ...]:
    """Load the tools. They are imported here and not above, so that a command line verb pays for none of them."""
    from a2mcp.tools import bash, edit, glob, grep, jobs, read, write  # noqa: PLC0415 - see above

    return (read.TOOL, write.TOOL, edit.TOOL, bash.TOOL, jobs.TOOL, glob.TOOL, grep.TOOL)
