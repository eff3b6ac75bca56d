"""The tools that the official suite calls by name, with the texts it looks for; and a few that only our tests want."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.errors import ToolError
from a2mcp.tools import asking
from a2mcp.tools.registry import LocalHost
from a2mcp.tools.result import (
    PENDING,
    Audio,
    EmbeddedResource,
    Image,
    Question,
    ResourceContents,
    ResourceLink,
    Result,
    text,
)
from a2mcp.tools.spec import Lane, Tier, Tool, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.tools.context import Context
    from a2mcp.tools.result import Block, Outcome

    Run = Callable[[Any, Context], Outcome]

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
GAP_S: Final = 0.05
"""Between two reports of progress, as the suite asks for it."""


class Nothing(msgspec.Struct):
    pass


class Message(msgspec.Struct):
    message: str


class Prompt(msgspec.Struct):
    prompt: str


class Person(msgspec.Struct):
    name: str | None = None
    address: dict[str, Any] | None = None
    contactMethod: str | None = None  # noqa: N815  # The suite's name.
    phone: str | None = None
    email: str | None = None


class Region(msgspec.Struct):
    region: str
    verbose: bool = False
    limit: int = 10


class Echo(msgspec.Struct):
    text: str = ""


class Gate(msgspec.Struct):
    key: str


NO_ARGUMENTS: Final = {"type": "object", "properties": {}, "additionalProperties": False}


def one(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


SCHEMA_2020_12: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
MIRRORED: Final = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "verbose": {"type": "boolean", "x-mcp-header": "Verbose"},
        "limit": {"type": "integer", "x-mcp-header": "Limit"},
    },
    "required": ["region"],
    "additionalProperties": False,
}
DEFAULTS: Final = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}


def titled(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"const": const, "title": title} for const, title in pairs]


ENUMS: Final = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": titled(("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option")),
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {
        "type": "array",
        "items": {"anyOf": titled(("value1", "First Choice"), ("value2", "Second Choice"), ("value3", "Third Choice"))},
    },
}

# --- what is said ---------------------------------------------------------------------------------------------------


def says(*blocks: Block) -> Run:
    return lambda _params, _context: Result(content=blocks)


def resource(uri: str, mime_type: str, body: str) -> EmbeddedResource:
    return EmbeddedResource(ResourceContents(uri=uri, mime_type=mime_type, text=body))


def fails(_params: Nothing, _context: Context) -> Outcome:
    raise ToolError("This tool intentionally returns an error for testing")


def progresses(_params: Nothing, context: Context) -> Outcome:
    for done in (0, 50, 100):
        context.tell.progress(done, 100, f"{done} of 100")
        threading.Event().wait(GAP_S)
    return text("done")


def logs(_params: Nothing, context: Context) -> Outcome:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        context.tell.log("info", line)
        threading.Event().wait(GAP_S)
    return text("logged")


# --- what is asked --------------------------------------------------------------------------------------------------


def elicitation(message: str, **properties: Any) -> Question:
    return asking.elicitation(message, {"type": "object", "properties": properties, "required": list(properties)})


def sampling(prompt: str, most: int = 100) -> Question:
    said = {"role": "user", "content": {"type": "text", "text": prompt}}
    return Question("sampling/createMessage", {"messages": [said], "maxTokens": most})


ROOTS: Final = Question("roots/list", {})
STRING: Final = {"type": "string"}
NAME: Final = elicitation("What is your name?", name=STRING)


def answered(context: Context, key: str, question: Question) -> dict[str, Any]:
    return asking.ask(context, {key: question})[key]


def told(answer: dict[str, Any]) -> str:
    return f"action={answer['action']}, content={json.dumps(answer.get('content'))}"


def asks_model(params: Prompt, context: Context) -> Outcome:
    answer = answered(context, "answer", sampling(params.prompt))
    return text(f"LLM response: {answer['content'].get('text')}")


def asks_user(params: Message, context: Context) -> Outcome:
    question = elicitation(params.message, username=STRING, email=STRING)
    return text(f"User response: {told(answered(context, 'answer', question))}")


def asks_form(properties: dict[str, Any]) -> Run:
    def run(_params: Nothing, context: Context) -> Outcome:
        schema = {"type": "object", "properties": properties, "required": []}
        answer = asking.elicit(context, "answer", "Please fill this in", schema)
        return text(f"Elicitation completed: {told(answer)}")

    return run


def greets(_params: Nothing, context: Context) -> Outcome:
    answer = answered(context, "user_name", NAME)
    return text(f"Hello, {answer.get('content', {}).get('name')}!")


def asks_capital(_params: Nothing, context: Context) -> Outcome:
    answer = answered(context, "capital_question", sampling("What is the capital of France?"))
    return text(f"The model says: {answer['content'].get('text')}")


def asks_roots(_params: Nothing, context: Context) -> Outcome:
    return text(f"Your roots: {json.dumps(answered(context, 'client_roots', ROOTS)['roots'])}")


def keeps_state(_params: Nothing, context: Context) -> Outcome:
    confirm = elicitation("Please confirm", ok={"type": "boolean"})
    asking.ask(context, {"confirm": confirm}, state="kept")
    return text("state-ok" if context.state == "kept" else "the state is gone")


def asks_three(_params: Nothing, context: Context) -> Outcome:
    wanted = {"user_name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}
    return text(f"Thank you for {', '.join(asking.ask(context, wanted))}.")


def asks_twice(_params: Nothing, context: Context) -> Outcome:
    first = answered(context, "step1", elicitation("Step 1: What is your name?", name=STRING))
    second = answered(context, "step2", elicitation("Step 2: What is your favorite color?", color=STRING))
    return text(f"{told(first)} {told(second)}")


def asks_what_it_may(_params: Nothing, context: Context) -> Outcome:
    wanted = {"user_name": NAME, "capital_question": sampling("What is the capital of France?")}
    return text(f"Asked {len(asking.ask(context, asking.possible(context, wanted)))}.")


# --- what changes, waits and tells: for our tests -------------------------------------------------------------------


def echo(params: Echo, _context: Context) -> Outcome:
    return text(params.text)


def structured(_params: Nothing, _context: Context) -> Outcome:
    return text('{"answer":42}', structured={"answer": 42})


def hang(_params: Nothing, _context: Context) -> Outcome:
    return PENDING


class Gates:
    """Calls that end when another call says so: no test guesses how long something takes."""

    def __init__(self) -> None:
        self._open: dict[str, threading.Event] = {}

    def _gate(self, key: str) -> threading.Event:
        return self._open.setdefault(key, threading.Event())

    def wait(self, params: Gate, context: Context) -> Outcome:
        gate = self._gate(params.key)
        while not gate.wait(0.02):
            if context.cancelled():
                break
            context.tell.progress(1)
            context.tell.progress(1)
        context.tell.progress(0.5)
        context.tell.progress(2)
        return text(f"passed {params.key}")

    def open(self, params: Gate, _context: Context) -> Outcome:
        self._gate(params.key).set()
        return text("opened")


class FixtureHost(LocalHost):
    name = "fixture"

    def __init__(self) -> None:
        super().__init__()
        gates = Gates()
        for tool in (*_of_the_suite(), *_of_ours(gates)):
            self.register(tool)
        self.register(_tool("test_trigger_tool_change", self._come_and_go))

    def _come_and_go(self, _params: Nothing, _context: Context) -> Outcome:
        self.register(_tool("test_dynamic_tool", says(*text("here").content)))
        self.drop("test_dynamic_tool")
        return text("changed")


def _tool(
    name: str, run: Run, params: type[msgspec.Struct] = Nothing, schema: dict[str, Any] | None = None, **more: Any
) -> Tool[Any]:
    made = ToolSpec(
        name=name,
        title=name,
        description=f"Fixture: {name}",
        input_schema=schema or NO_ARGUMENTS,
        tier=Tier.READ,
        **({"lane": Lane.INLINE} | more),
    )
    return Tool(spec=made, params=params, run=run)


def _of_the_suite() -> tuple[Tool[Any], ...]:
    image, mixed = Image(PNG, "image/png"), text("Multiple content types test:").content[0]
    return (
        _tool("test_simple_text", says(*text("This is a simple text response for testing.").content)),
        _tool("test_image_content", says(image)),
        _tool("test_audio_content", says(Audio(WAV, "audio/wav"))),
        _tool(
            "test_embedded_resource",
            says(resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
        ),
        _tool(
            "test_multiple_content_types",
            says(
                mixed,
                image,
                resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
            ),
        ),
        _tool("test_error_handling", fails),
        _tool("test_tool_with_progress", progresses, lane=Lane.WORKER),
        _tool("test_tool_with_logging", logs, lane=Lane.WORKER),
        _tool("test_logging_tool", logs, lane=Lane.WORKER),
        _tool("test_reconnection", says(*text("Reconnection test completed").content)),
        _tool("json_schema_2020_12_tool", says(*text("ok").content), Person, SCHEMA_2020_12),
        _tool("test_custom_header", says(*text("ok").content), Region, MIRRORED),
        *_that_ask(),
    )


def _that_ask() -> tuple[Tool[Any], ...]:
    return (
        _tool("test_sampling", asks_model, Prompt, one("prompt")),
        _tool("test_elicitation", asks_user, Message, one("message")),
        _tool("test_elicitation_sep1034_defaults", asks_form(DEFAULTS)),
        _tool("test_elicitation_sep1330_enums", asks_form(ENUMS)),
        _tool("test_missing_capability", asks_capital),
        _tool("test_streaming_elicitation", greets),
        _tool("test_input_required_result_elicitation", greets),
        _tool("test_input_required_result_sampling", asks_capital),
        _tool("test_input_required_result_list_roots", asks_roots),
        _tool("test_input_required_result_request_state", keeps_state),
        _tool("test_input_required_result_multiple_inputs", asks_three),
        _tool("test_input_required_result_multi_round", asks_twice),
        _tool("test_input_required_result_tampered_state", keeps_state),
        _tool("test_input_required_result_capabilities", asks_what_it_may),
    )


def _of_ours(gates: Gates) -> tuple[Tool[Any], ...]:
    key = one("key")
    return (
        _tool("echo", echo, Echo, {"type": "object", "properties": {"text": STRING}}),
        _tool("hang", hang),
        _tool("wait-at-gate", gates.wait, Gate, key, lane=Lane.WORKER),
        _tool("open-gate", gates.open, Gate, key),
        _tool(
            "structured", structured, output_schema={"type": "object", "properties": {"answer": {"type": "integer"}}}
        ),
        _tool("link", says(ResourceLink(uri="test://static-text", name="static"))),
    )
