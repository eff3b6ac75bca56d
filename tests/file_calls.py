"""Calls of the three file tools as a client would make them: JSON arguments in, a result out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from a2mcp.clock import SystemClock
from a2mcp.tools import edit, read, write
from a2mcp.tools.context import Context, Limits
from a2mcp.tools.result import Result

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.tools.spec import AnyTool


class _Ticket:
    session_id = None

    def __init__(self) -> None:
        self.call_id = str(uuid4())


class _NoJobs:
    """A file tool starts no command."""


class Files:
    """The file tools in one working directory."""

    def __init__(self, cwd: Path, output_bytes: int = 50 * 1024) -> None:
        self.context = Context(
            ticket=_Ticket(),
            cwd=cwd,
            home=cwd / ".home",
            limits=Limits(output_bytes=output_bytes),
            jobs=_NoJobs(),
            clock=SystemClock(),
        )

    def _run(self, tool: AnyTool, arguments: dict[str, Any]) -> Result:
        result = tool.run(msgspec.convert(arguments, tool.params), self.context)
        assert isinstance(result, Result)
        for block in result.content:
            msgspec.json.encode(block)
        return result

    def read(self, path: str | Path, **arguments: Any) -> Result:
        return self._run(read.TOOL, {"path": str(path), **arguments})

    def write(self, path: str | Path, content: str, **arguments: Any) -> Result:
        return self._run(write.TOOL, {"path": str(path), "content": content, **arguments})

    def edit(self, path: str | Path, *edits: tuple[str, str] | dict[str, Any], **arguments: Any) -> Result:
        asked = [each if isinstance(each, dict) else {"oldText": each[0], "newText": each[1]} for each in edits]
        return self._run(edit.TOOL, {"path": str(path), "edits": asked, **arguments})


def body(result: Result) -> str:
    """The text block of a result."""
    return result.content[0].text


def header(result: Result) -> str:
    """The first line of a result."""
    return body(result).split("\n", 1)[0]


def everything(folder: Path) -> set[str]:
    """Every name below a folder, hidden ones too."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
