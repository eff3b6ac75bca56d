"""The tools that every daemon starts with."""

import json
import subprocess
import sys

from a2mcp.tools.arguments import decode
from a2mcp.tools.builtin import builtin_tools
from a2mcp.tools.registry import LocalHost, Registry
from a2mcp.tools.spec import Tier


def test_the_built_in_tools_and_what_they_can_do():
    """Source: issue (tools of the host)."""
    assert {tool.spec.name: tool.spec.tier for tool in builtin_tools()} == {
        "read": Tier.READ,
        "write": Tier.WRITE,
        "edit": Tier.WRITE,
        "bash": Tier.EXECUTE,
        "jobs": Tier.EXECUTE,
        "glob": Tier.READ,
        "grep": Tier.READ,
    }


def test_every_argument_of_every_tool_is_described():
    """Source: ours (the description is all that a model gets to see)."""
    for tool in json.loads(Registry([LocalHost(builtin_tools())]).catalog()):
        assert tool["title"]
        assert tool["description"]
        bare = [name for name, schema in tool["inputSchema"]["properties"].items() if not schema.get("description")]
        assert not bare, f"{tool['name']}: {bare}"


def test_a_call_of_any_tool_that_needs_no_argument_gets_the_defaults():
    """Source: ours."""
    for tool in builtin_tools():
        if "required" not in tool.spec.input_schema:
            assert decode(tool.params, None) == tool.params()


def test_loading_the_list_loads_no_tool():
    """Source: ours (the command line starts fast)."""
    code = "import sys, a2mcp.tools.builtin; sys.exit('a2mcp.tools.read' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
