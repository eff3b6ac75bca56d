"""The wire formats by name: what makes the thing that speaks one.

Owns the names and what is behind them. The formats themselves are in the extra, which is imported
once a request is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.errors import MissingExtra
from a2mcp.inference.keys import Credentials
from a2mcp.inference.rows import ModelRow

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[ModelRow, Credentials], Any]

PROVIDERS: Final = "a2mcp.inference.providers"


class Api(msgspec.Struct, frozen=True):
    """One wire format."""

    name: str
    make: Make
    """Makes what speaks it: a model of the agent's library."""
    bypasses: bool = False
    """Whether it reaches its provider by other ways than the sockets of this process, where nothing can be denied."""


def _ours(name: str, function: str) -> Api:
    def make(row: ModelRow, credentials: Credentials) -> Any:
        from importlib import import_module  # noqa: PLC0415 - a daemon that asks no model loads none of it

        try:
            module = import_module(PROVIDERS)
        except ModuleNotFoundError as error:
            raise MissingExtra(f"{error.name} is not installed") from error
        return getattr(module, function)(row, credentials)

    return Api(name, make)


BUILTIN: Final = (
    _ours("openai-completions", "openai_completions"),
    _ours("openai-responses", "openai_responses"),
    _ours("anthropic-messages", "anthropic_messages"),
)
