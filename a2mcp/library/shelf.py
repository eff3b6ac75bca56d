"""Who offers resources and prompts: shelves, and the library that finds the right one.

As with the tools, readers take no lock and every change makes a new version; who listens for changes is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from a2mcp.errors import InvalidParams, NoSuchResource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2mcp.library.spec import PromptResult, PromptSpec, ResourceSpec, TemplateSpec
    from a2mcp.tools.context import Context
    from a2mcp.tools.result import ResourceContents


class Shelf(Protocol):
    """Somebody who has resources or prompts. What it does not have is an empty list."""

    def resources(self) -> Sequence[ResourceSpec]:
        """The resources that have a fixed address."""
        ...

    def templates(self) -> Sequence[TemplateSpec]:
        """The forms of the addresses of the others."""
        ...

    def read(self, uri: str, context: Context) -> tuple[ResourceContents, ...] | None:
        """Read a resource; None when it is not on this shelf. May block.

        Raises:
            NoSuchResource: it would be here, but is not.
            ToolError: it cannot be read.
        """
        ...

    def prompts(self) -> Sequence[PromptSpec]:
        """The prompts."""
        ...

    def prompt(self, name: str, arguments: dict[str, str], context: Context) -> PromptResult:
        """Fill in one of this shelf's prompts. Must not block.

        Raises:
            InvalidParams: an argument is missing.
            InputRequired: the caller must be asked first.
        """
        ...

    def complete(self, name: str, argument: str, value: str) -> Sequence[str]:
        """Propose values for an argument of a prompt or a variable of a template. Must not block."""
        ...

    def attach(self, announce: Callable[[str], None]) -> None:
        """Remember whom to tell when ``resources`` or ``prompts`` change, or when an address does."""
        ...


class Library:
    """The shelves, in the order in which they are asked.

    Args:
        shelves: who has something.
    """

    def __init__(self, shelves: Sequence[Shelf]) -> None:
        self._shelves = tuple(shelves)

    def resources(self) -> list[ResourceSpec]:
        """Every resource with a fixed address."""
        return [spec for shelf in self._shelves for spec in shelf.resources()]

    def templates(self) -> list[TemplateSpec]:
        """The forms of the other addresses."""
        return [spec for shelf in self._shelves for spec in shelf.templates()]

    def prompts(self) -> list[PromptSpec]:
        """Every prompt."""
        return [spec for shelf in self._shelves for spec in shelf.prompts()]

    def read(self, uri: str, context: Context) -> tuple[ResourceContents, ...]:
        """Read a resource. May block.

        Raises:
            NoSuchResource: no shelf has it.
            ToolError: it cannot be read.
        """
        for shelf in self._shelves:
            contents = shelf.read(uri, context)
            if contents is not None:
                return contents
        raise NoSuchResource(uri)

    def prompt(self, name: str, arguments: dict[str, str], context: Context) -> PromptResult:
        """Fill in a prompt.

        Raises:
            InvalidParams: there is none of that name, or an argument is missing.
        """
        shelf, spec = self._find(name)
        missing = [argument.name for argument in spec.arguments if argument.required and argument.name not in arguments]
        if missing:
            raise InvalidParams(f"invalid params: prompt '{spec.name}' lacks {', '.join(missing)}")
        return shelf.prompt(name, arguments, context)

    def complete(self, name: str, argument: str, value: str) -> list[str]:
        """Propose values for an argument of a prompt or a variable of a template.

        Raises:
            InvalidParams: no shelf has either.
        """
        for shelf in self._shelves:
            known = {spec.name for spec in shelf.prompts()} | {spec.uri_template for spec in shelf.templates()}
            if name in known:
                return list(shelf.complete(name, argument, value))
        raise InvalidParams("invalid params: unknown reference")

    def attach(self, announce: Callable[[str], None]) -> None:
        """Have every shelf tell its changes."""
        for shelf in self._shelves:
            shelf.attach(announce)

    def _find(self, name: str) -> tuple[Shelf, PromptSpec]:
        for shelf in self._shelves:
            for spec in shelf.prompts():
                if spec.name == name:
                    return shelf, spec
        raise InvalidParams("invalid params: unknown prompt", hint="Call prompts/list for the names.")
