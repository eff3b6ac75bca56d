"""What is known of one model: where it is asked, in which format, with which key.

Owns the values. Does not know where they come from or whether anybody may use them.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

DENY: Final = "a2mcp-deny"
"""The API of every row while this host may ask no model."""
PLACEHOLDER_HOST: Final = "a2mcp.invalid"
"""Reserved by RFC 6761: no resolver ever answers for it."""


class Key(msgspec.Struct, frozen=True):
    """Where a credential comes from. What it is, is found out when a request is made."""

    kind: Literal["none", "literal", "environment", "command"] = "none"
    value: str = ""

    def __repr__(self) -> str:
        # SECURITY: the one that a struct writes by itself would put the key into any traceback or log line.
        return f"Key({self.kind!r})"


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars for a million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model of one provider, with all that it takes to ask it."""

    provider: str
    id: str
    name: str
    api: str
    """The wire format, by its name in the table of APIs."""
    base_url: str
    key: Key = Key()
    headers: dict[str, Key] = {}
    """Sent with every request, beside what the format needs."""
    transport: str | None = None
    """A way of its own to the provider, which no API of ours speaks."""
    context_window: int | None = None
    max_tokens: int | None = None
    """Of one answer."""
    input: tuple[str, ...] = ("text",)
    """What it reads: ``text``, ``image``."""
    reasoning: bool = False
    cost: Cost = Cost()

    @property
    def ref(self) -> str:
        """Its name among all models: ``provider/id``."""
        return f"{self.provider}/{self.id}"

    @property
    def usable(self) -> bool:
        """Whether there is any point in asking it: False of the placeholder."""
        return PLACEHOLDER_HOST not in self.base_url.partition("://")[2].partition("/")[0]

    @property
    def waits(self) -> bool:
        """Whether asking for its credentials may wait for a program."""
        return any(key.kind == "command" for key in (self.key, *self.headers.values()))


class Catalogue(msgspec.Struct, frozen=True):
    """What the operator's file says."""

    rows: tuple[ModelRow, ...] = ()
    default: str | None = None
    """The model to choose: the one that is named, else the first."""
    warnings: tuple[str, ...] = ()


PLACEHOLDER: Final = ModelRow(
    provider="a2mcp",
    id="offline",
    name="a2mcp placeholder (unreachable)",
    api="anthropic-messages",
    base_url=f"http://{PLACEHOLDER_HOST}/v1",
    key=Key("literal", "not-a-real-key"),
    context_window=100_000,
)
"""What stands in the place of a chosen model where none is: an error of the connection in the place of none at all."""
