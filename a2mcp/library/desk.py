"""``resources/read`` as a call: it may block, so it is recorded, approved and run like a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.library import filespace
from a2mcp.tools.registry import Entry
from a2mcp.tools.result import Encoded
from a2mcp.tools.spec import Tier, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2mcp.library.shelf import Library
    from a2mcp.tools.context import Context
    from a2mcp.tools.result import Outcome

READ: Final = "resources/read"
READ_TOOL: Final = "read"


class _Target(msgspec.Struct, frozen=True):
    uri: str


class Desk:
    """A host with one thing to call, which no catalogue lists."""

    name = "library"

    def __init__(self, library: Library) -> None:
        self._library = library

    def list(self) -> Sequence[ToolSpec]:
        """Nothing is offered as a tool."""
        return ()

    def call(self, _name: str, raw_arguments: bytes | msgspec.Raw | None, context: Context) -> Outcome:
        """Read the resource."""
        target = msgspec.json.decode(raw_arguments or b"{}", type=_Target)
        contents = self._library.read(target.uri, context)
        return Encoded(msgspec.json.encode({"contents": contents}), cacheable=True)

    def state(self) -> str:
        """How many resources have a fixed address."""
        return f"{len(self._library.resources())} resources"

    def attach(self, announce: Callable[[Sequence[ToolSpec]], None]) -> None:
        """Its list never changes."""

    def entry(self, raw_arguments: bytes | msgspec.Raw) -> Entry:
        """What the executor runs, under the name by which it is allowed or denied.

        A file is under the rule of the tool that reads files, so that denying the tool leaves no way around it.
        """
        target = msgspec.json.decode(raw_arguments, type=_Target)
        name = READ_TOOL if target.uri[: len(filespace.SCHEME)].lower() == filespace.SCHEME else READ
        return Entry(
            self, ToolSpec(name=name, title="Read a resource", description="", input_schema={}, tier=Tier.READ)
        )
