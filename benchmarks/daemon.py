"""Our daemon with two tools more: ``echo``, and ``hang``, which never answers. Its home is ``A2MCP_HOME``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from a2mcp.__main__ import serve
from a2mcp.config.paths import home_from_environment
from a2mcp.tools.registry import LocalHost
from a2mcp.tools.result import PENDING, Outcome, text
from a2mcp.tools.spec import Lane, Tier, Tool, ToolSpec

if TYPE_CHECKING:
    from a2mcp.tools.context import Context


class EchoParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ``echo`` takes."""

    text: str


class HangParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``hang`` takes nothing."""


def _spec(name: str, description: str, properties: dict[str, object]) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ToolSpec(
        name=name,
        title=name.title(),
        description=description,
        input_schema=schema,
        tier=Tier.READ,
        lane=Lane.INLINE,
    )


def _echo(params: EchoParams, _: Context) -> Outcome:
    return text(params.text)


def _hang(_: HangParams, __: Context) -> Outcome:
    return PENDING


def benchmark_host() -> LocalHost:
    """The host of the two tools."""
    echo = Tool(_spec("echo", "Give the text back.", {"text": {"type": "string"}}), EchoParams, _echo)
    hang = Tool(_spec("hang", "Never answer.", {}), HangParams, _hang)
    host = LocalHost((echo, hang))
    host.name = "benchmark"
    return host


if __name__ == "__main__":
    sys.exit(serve(home_from_environment(os.environ), hosts=(benchmark_host(),)))
