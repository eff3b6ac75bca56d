"""The catalogue as a whole: small, in the words of every model's function calling, the same for everybody."""

from __future__ import annotations

import json

import jsonschema
import pytest
from command_calls import Shell

from a2mcp.tools import bash, edit, glob, grep, write
from a2mcp.tools.builtin import builtin_tools
from a2mcp.tools.context import Context, Limits
from a2mcp.tools.presets import TOOLS, Preset, ToolSettings
from a2mcp.tools.registry import LocalHost, Registry

PORTABLE = {
    "type", "description", "enum", "default", "properties", "required", "additionalProperties", "items", "minItems",
    "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern",
}  # fmt: skip
"""What both OpenAI and Gemini take."""
HINTS = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}


def listed():
    return [json.loads(bytes(raw)) for raw in Registry([LocalHost(builtin_tools())]).listed()]


def nodes(schema):
    """Yield a schema and each of its parts."""
    yield schema
    parts = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for part in parts:
        if isinstance(part, dict):
            yield from nodes(part)


def test_the_whole_list_is_small():
    """Issue §7: under 24 KB serialised; every token of it is paid for in every conversation."""
    assert sum(len(bytes(raw)) for raw in Registry([LocalHost(builtin_tools())]).listed()) < 24_000


@pytest.mark.parametrize("tool", listed(), ids=lambda tool: tool["name"])
def test_every_model_takes_every_tool(tool):
    """Issue §7: short names; one type for each value; no `$ref`, no union, no combinator at the root."""
    assert len(tool["name"]) <= 24
    assert tool["title"]
    assert set(tool["annotations"]) >= HINTS
    assert tool["inputSchema"]["type"] == "object"
    for node in nodes(tool["inputSchema"]):
        assert set(node) <= PORTABLE, node
        assert isinstance(node["type"], str), node


@pytest.mark.parametrize("tool", [tool for tool in listed() if "outputSchema" in tool], ids=lambda tool: tool["name"])
def test_every_schema_of_results_is_one(tool):
    """MCP 2025-06-18: an output schema is an object's."""
    jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
    assert tool["outputSchema"]["type"] == "object"


def test_the_order_is_the_same_every_time():
    """Issue §3 and §7: deterministic order."""
    assert [tool["name"] for tool in listed()] == list(TOOLS[Preset.FULL])
    assert tuple(tool.spec.name for tool in builtin_tools(("grep", "read"))) == ("read", "grep")


def test_presets_and_switches_choose_the_tools():
    """Issue §7: `tools.preset` and per-tool off switches."""
    assert ToolSettings(preset=Preset.MINIMAL).names == ("read", "bash", "jobs")
    assert ToolSettings(preset=Preset.CODING, off=("bash", "jobs")).names == ("read", "write", "edit", "glob", "grep")
    assert ToolSettings().names == TOOLS[Preset.FULL]


@pytest.fixture
def shell(tmp_path):
    made = Shell(tmp_path / "home")
    yield made
    made.close()


def conforms(tool, result):
    assert not result.is_error, result
    jsonschema.validate(json.loads(json.dumps(result.structured)), tool.spec.output_schema)


def test_results_are_what_their_schemas_say(shell, tmp_path):
    """MCP 2025-06-18: "Servers MUST provide structured results that conform"."""
    context = Context(
        ticket=None, cwd=tmp_path, home=tmp_path, limits=Limits(), jobs=None, clock=shell.clock
    )  # fmt: skip

    def run(tool, **arguments):
        conforms(tool, tool.run(tool.params(**arguments), context))

    run(write.TOOL, path="a.txt", content="one\n")
    run(edit.TOOL, path="a.txt", edits=[edit.Edit(old_text="one", new_text="two")])
    run(edit.TOOL, path="a.txt", edits=[edit.Edit(old_text="two", new_text="six")], dry_run=True)
    run(glob.TOOL, pattern="*.txt")
    run(glob.TOOL, pattern="nowhere/*")
    run(grep.TOOL, pattern="two")
    run(grep.TOOL, pattern="nothing here")
    conforms(bash.TOOL, shell.bash("echo out; echo err >&2"))
    conforms(bash.TOOL, shell.bash("sleep 60", wait=0))


def test_a_command_that_fails_has_a_result_of_the_same_shape(shell):
    """Ours: a client that validates gets no surprise from a command that was killed."""
    for result in (shell.bash("exit 3"), shell.bash("kill -9 $$"), shell.bash("sleep 60", timeout=0.05)):
        jsonschema.validate(json.loads(json.dumps(result.structured)), bash.TOOL.spec.output_schema)
