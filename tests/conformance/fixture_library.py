"""The resources and prompts that the official suite reads by name, with the texts it looks for."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from fixture_tools import PNG, elicitation

from a2mcp.library.spec import PromptArgument, PromptMessage, PromptResult, PromptSpec, ResourceSpec, TemplateSpec
from a2mcp.protocol import notices
from a2mcp.tools import asking
from a2mcp.tools.registry import LocalHost
from a2mcp.tools.result import EmbeddedResource, Image, ResourceContents, Text, text
from a2mcp.tools.spec import Lane, Tier, Tool, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fixture_tools import Nothing as Params

    from a2mcp.tools.context import Context
    from a2mcp.tools.result import Block, Outcome

TEXT: Final = "This is the content of the static text resource."
_TEMPLATED: Final = re.compile(r"test://template/([^/]+)/data")


def fixed(uri: str, name: str, mime_type: str) -> ResourceSpec:
    return ResourceSpec(uri=uri, name=name, description=f"Fixture: {name}", mime_type=mime_type)


RESOURCES: Final = (
    fixed("test://static-text", "Static text", "text/plain"),
    fixed("test://static-binary", "Static binary", "image/png"),
    fixed("test://watched-resource", "Watched", "text/plain"),
)
CONTENTS: Final = {
    "test://static-text": {"mime_type": "text/plain", "text": TEXT},
    "test://static-binary": {"mime_type": "image/png", "blob": PNG},
    "test://watched-resource": {"mime_type": "text/plain", "text": "Watched."},
}
TEMPLATE: Final = TemplateSpec(
    uri_template="test://template/{id}/data", name="Template", description="Fixture: data", mime_type="application/json"
)


def prompt(name: str, *arguments: str) -> PromptSpec:
    wanted = tuple(PromptArgument(name=each, description=f"Fixture: {each}", required=True) for each in arguments)
    return PromptSpec(name=name, description=f"Fixture: {name}", arguments=wanted)


PROMPTS: Final = (
    prompt("test_simple_prompt"),
    prompt("test_prompt_with_arguments", "arg1", "arg2"),
    prompt("test_prompt_with_embedded_resource", "resourceUri"),
    prompt("test_prompt_with_image"),
    prompt("test_input_required_result_prompt"),
)


class FixtureShelf:
    """A shelf whose contents never change, but which can be told to say that they did."""

    def __init__(self) -> None:
        self._announce: Callable[..., None] = lambda _: None

    def resources(self) -> Sequence[ResourceSpec]:
        return RESOURCES

    def templates(self) -> Sequence[TemplateSpec]:
        return (TEMPLATE,)

    def prompts(self) -> Sequence[PromptSpec]:
        return PROMPTS

    def read(self, uri: str, _context: Context) -> tuple[ResourceContents, ...] | None:
        if uri in CONTENTS:
            return (ResourceContents(uri=uri, **CONTENTS[uri]),)
        if found := _TEMPLATED.fullmatch(uri):
            body = json.dumps({"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"})
            return (ResourceContents(uri=uri, mime_type="application/json", text=body),)
        return None

    def prompt(self, name: str, arguments: dict[str, str], context: Context) -> PromptResult:
        match name:
            case "test_prompt_with_arguments":
                values = f"arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
                return says(Text(f"Prompt with arguments: {values}"))
            case "test_prompt_with_embedded_resource":
                body = "Embedded resource content for testing."
                contents = ResourceContents(uri=arguments["resourceUri"], mime_type="text/plain", text=body)
                return says(EmbeddedResource(contents), Text("Please process the embedded resource above."))
            case "test_prompt_with_image":
                return says(Image(PNG, "image/png"), Text("Please analyze the image above."))
            case "test_input_required_result_prompt":
                question = elicitation("What context should the prompt use?", context={"type": "string"})
                answer = asking.ask(context, {"user_context": question})["user_context"]
                return says(Text(f"Context: {answer.get('content', {}).get('context')}"))
        return says(Text("This is a simple prompt for testing."))

    def complete(self, _name: str, _argument: str, value: str) -> Sequence[str]:
        return [word for word in ("paris", "park", "party") if word.startswith(value)]

    def attach(self, announce: Callable[..., None]) -> None:
        self._announce = announce

    def change_prompts(self, _params: Params, _context: Context) -> Outcome:
        self._announce(notices.PROMPTS_CHANGED)
        return text("changed")

    def change_resources(self, _params: Params, _context: Context) -> Outcome:
        self._announce(notices.RESOURCES_CHANGED)
        self._announce(notices.RESOURCE_UPDATED, "test://watched-resource")
        return text("changed")


def says(*blocks: Block) -> PromptResult:
    return PromptResult(description="Fixture", messages=tuple(PromptMessage("user", block) for block in blocks))


class LibraryHost(LocalHost):
    """The tools that have the shelf tell changes."""

    name = "fixture-library"

    def __init__(self, shelf: FixtureShelf, params: type[Params]) -> None:
        super().__init__()
        for name, run in (
            ("test_trigger_prompt_change", shelf.change_prompts),
            ("test_trigger_resource_change", shelf.change_resources),
        ):
            spec = ToolSpec(
                name=name,
                title=name,
                description=f"Fixture: {name}",
                input_schema={"type": "object", "properties": {}, "additionalProperties": False},
                tier=Tier.READ,
                lane=Lane.INLINE,
            )
            self.register(Tool(spec=spec, params=params, run=run))
