"""``a2mcp host-llm`` against a channel that only remembers."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({}, "host_llm=allow denied=2 model=local/qwen3\n"),
        ({"enabled": False}, "host_llm=deny denied=2 model=local/qwen3\n"),
        ({"enabled": False, "degraded": True}, "host_llm=deny (tripwire only) denied=2 model=local/qwen3\n"),
        ({"model": None, "denied": 0}, "host_llm=allow denied=0 model=none\n"),
        ({"model": "a/\x1b[2J"}, "host_llm=allow denied=2 model=a/\\x1b[2J\n"),
    ],
)
def test_the_switch_is_shown(run, served, change, line):
    """Source: seed: /a2mcp shows host_llm=deny denied=2, and (tripwire only) where it is degraded."""
    served.inference = replace(served.inference, **change)
    assert run("host-llm").output == line


def test_the_switch_is_set_and_shown_as_it_stands_then(run, served):
    """Source: issue, item 5."""
    assert run("host-llm", "off").output.startswith("host_llm=deny ")
    assert json.loads(run("host-llm", "--json").output)["enabled"] is False
    assert run("host-llm", "on").output.startswith("host_llm=allow ")
    assert served.inference.enabled


def test_what_cannot_be_denied_is_an_error_with_its_reason(run, served):
    """Source: issue, item 4: refuse the arming."""
    served.inference = replace(served.inference, degraded=True)
    result = run("host-llm", "off")
    assert result.exit_code == 1
    assert result.stderr == "a2mcp: inference cannot be denied: far.\n       Change it.\n"


def test_another_word_is_no_switch(run):
    """Ours."""
    assert run("host-llm", "maybe").exit_code == 2
