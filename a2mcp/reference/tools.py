"""The page of the tools: their words for the model, their arguments and what they can do, from the specs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from a2mcp.reference.markdown import code, head, table
from a2mcp.tools import agents, xfer
from a2mcp.tools.builtin import builtin_tools
from a2mcp.tools.spec import Tier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2mcp.tools.spec import AnyTool, ToolSpec
    from a2mcp.types import JsonObject

_INTRODUCTION: Final = """
What `tools/list` offers on a daemon without further hosts, in its order; the tools `agent_…` only while there is a
[model](../how-to/models.md) to ask. The description of each tool is the text that the model gets.

Every tool takes one JSON object. A field that is not listed is refused, and so is a value of another type. Taken is
what is certainly meant: `3.0` and `"3"` for an integer, `"1.5"` for a number, `"true"` and `"false"` for a boolean, a
string of JSON for a list or an object, and `null` for a field that may be left out. A refusal is a result with
`isError: true` whose text names the field, what was expected and what came.

Relative paths start in the daemon's working directory (setting `cwd`). `~`, `~/…` and `file://…` are understood.

Text in one result is bounded by `limits.output_bytes` (50 KiB). What is longer is cut in the middle, and the gap says
which call reads it.

Results come as text, and as `structuredContent` beside it.
"""

_TIERS: Final = {
    Tier.READ: "reads only; approval mode `write` lets it through",
    Tier.WRITE: "changes files; approval mode `write` asks first",
    Tier.EXECUTE: "runs commands; approval mode `write` asks first",
}

EXAMPLES: Final[dict[str, tuple[JsonObject, ...]]] = {
    "read": ({"path": "~/notes.txt"}, {"path": "/var/log/syslog", "offset": -20}),
    "write": ({"path": "notes/today.md", "content": "# Today\n"},),
    "edit": ({"path": "app.py", "edits": [{"oldText": "DEBUG = True", "newText": "DEBUG = False"}], "dry_run": True},),
    "bash": ({"command": "make test", "cwd": "~/project", "timeout": 600}, {"command": "./serve.sh", "wait": 0}),
    "jobs": ({"action": "list"}, {"action": "output", "id": "jydz32a7h", "offset": -2000}),
    "glob": ({"pattern": "src/**/*.{js,ts}"},),
    "grep": ({"pattern": "def main", "path": "src", "glob": "*.py", "context": 2},),
    "agent_run": (
        {"prompt": "Find out why the tests in ~/project fail, and say what to change."},
        {"prompt": "Build ~/project and report the warnings.", "model": "local/qwen3", "wait": 0},
    ),
    "agent_continue": ({"session": "a7f3ak", "prompt": "Now fix the first one."},),
    "agent_wait": ({"session": "a7f3ak", "wait": 600},),
    "agent_read": ({"session": "a7f3ak"}, {"session": "a7f3ak", "after": 40, "limit": 20}),
    "agent_list": ({"running": True},),
    "agent_cancel": ({"session": "a7f3ak"},),
    "agent_ask": ({"session": "a7f3ak", "question": "Which port did you choose?"},),
    "agent_answer": ({"id": "qm2xv9", "text": "4801."},),
    "agent_status": ({},),
    "xfer_share": ({"path": "~/results"}, {"path": "build/image.iso", "ttlSeconds": 600}),
    "xfer_status": ({},),
    "xfer_stop": ({},),
}
"""Arguments that work; the tests decode each of them."""


def every_tool() -> tuple[AnyTool, ...]:
    """Every tool of a daemon with an agent and without further hosts, in the order of the catalogue."""
    return (*builtin_tools(), *agents.every_tool(), *xfer.TOOLS)


def page() -> str:
    """Write the page."""
    specs = [tool.spec for tool in every_tool()]
    return head("Tools", "the specs in a2mcp/tools") + _INTRODUCTION + "".join(map(_tool, specs))


def _tool(spec: ToolSpec) -> str:
    rows = list(_rows(spec.input_schema))
    arguments = table(("argument", "type", "default", "meaning"), rows) if rows else "No arguments.\n"
    examples = "\n".join(json.dumps(example, ensure_ascii=False) for example in EXAMPLES[spec.name])
    return (
        f"\n## {spec.name}\n\n**{spec.title}.** {spec.description}\n\n{arguments}\n"
        f"{_traits(spec)}\n\n```json\n{examples}\n```\n"
    )


def _traits(spec: ToolSpec) -> str:
    traits = [f"Tier `{spec.tier}`: {_TIERS[spec.tier]}."]
    if spec.past_mode:
        traits = ["Served by the daemon itself: no approval mode holds it, only a rule for its name."]
    if spec.idempotent:
        traits.append("Idempotent.")
    if spec.open_world:
        traits.append("It can reach beyond this machine.")
    return " ".join(traits)


def _rows(schema: JsonObject, prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    required = schema.get("required", ())
    for name, value in schema["properties"].items():
        default = "*required*" if name in required else code(_default(value))
        yield code(prefix + name), _type(value), default, value.get("description", "")
        if "properties" in value.get("items", {}):
            yield from _rows(value["items"], f"{prefix}{name}[].")


def _default(value: JsonObject) -> str:
    return json.dumps(value["default"], ensure_ascii=False) if "default" in value else ""


def _type(value: JsonObject) -> str:
    if "enum" in value:
        return ", ".join(code(word) for word in value["enum"])
    kind: str = value["type"]
    if kind == "array":
        kind = f"array of {value['items']['type']}s"
    bounds = _bounds(value)
    return f"{kind}, {bounds}" if bounds else kind


def _bounds(value: dict[str, Any]) -> str:
    low, high = value.get("minimum"), value.get("maximum")
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"at least {low}"
    return f"matching `{value['pattern']}`" if "pattern" in value else ""
