"""The fields of one mapping of a YAML file, each checked as it is read; those that nobody read are told at the end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from a2mcp.config.yamltree import Bad, Node

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class Fields:
    """A mapping that is being read. Used as a context: leaving it warns of fields that nobody knows.

    Args:
        node: the mapping.
        what: what it is, for a refusal.
        warn: is told a line and what is odd in it.

    Raises:
        Bad: from every method, when what is there is something else.
    """

    def __init__(self, node: Node, what: str, warn: Callable[[int, str], object]) -> None:
        if not isinstance(node.value, dict):
            raise Bad(node.line, f"{what} must be a mapping")
        self.what = what
        self.line = node.line
        self._members: dict[str, Node] = node.value
        self._warn = warn
        self._known: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if kind is None:
            for name in self._members.keys() - self._known:
                self._warn(self._members[name].line, f"unknown field '{name[:80]}' of {self.what} is ignored")

    def bad(self, name: str, text: str) -> Bad:
        """Make the refusal of a field."""
        return Bad(self._members[name].line if name in self._members else self.line, f"'{name}' of {self.what} {text}")

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.node(name) is not None

    def node(self, name: str) -> Node | None:
        """The field as it stands; None where it is not there, or null."""
        self._known.add(name)
        found = self._members.get(name)
        return None if found is None or found.value is None else found

    def text(self, name: str) -> str | None:
        """A string that can be printed and is not empty."""
        node = self.node(name)
        if node is None:
            return None
        if not isinstance(node.value, str) or not node.value or not node.value.isprintable():
            raise self.bad(name, "must be a non-empty string")
        return node.value

    def required(self, name: str) -> str:
        """The same, of a field that must be there."""
        found = self.text(name)
        if found is None:
            raise self.bad(name, "is missing")
        return found

    def url(self, name: str) -> str | None:
        """An address that a provider can be reached at."""
        text = self.text(name)
        if text is None:
            return None
        try:
            parts = urlsplit(text)
            fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            fine = False
        if not fine or "@" in parts.netloc or not text.isascii():
            raise self.bad(name, "must be an address such as https://api.example.com/v1, without a user")
        return text

    def count(self, name: str) -> int | None:
        """A positive integer."""
        node = self.node(name)
        if node is None:
            return None
        if type(node.value) is not int or node.value <= 0:
            raise self.bad(name, "must be a positive integer")
        return node.value

    def price(self, name: str) -> float:
        """A number that is not negative; 0 where there is none."""
        node = self.node(name)
        value: Any = 0.0 if node is None else node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise self.bad(name, "must be a number that is not negative")
        return float(value)

    def flag(self, name: str) -> bool:
        """True or false; false where there is nothing."""
        node = self.node(name)
        if node is not None and not isinstance(node.value, bool):
            raise self.bad(name, "must be true or false")
        return node is not None and bool(node.value)

    def items(self, name: str) -> list[Node]:
        """A sequence; an empty one where there is none."""
        node = self.node(name)
        if node is not None and not isinstance(node.value, list):
            raise self.bad(name, "must be a sequence")
        return [] if node is None else node.value

    def words(self, name: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """A sequence of some of these words."""
        found = tuple(item.value for item in self.items(name))
        if not set(found) <= set(allowed):
            raise self.bad(name, "may hold " + " and ".join(f"'{word}'" for word in allowed))
        return found

    def mapping(self, name: str) -> dict[str, Node]:
        """A mapping; an empty one where there is none."""
        node = self.node(name)
        if node is not None and not isinstance(node.value, dict):
            raise self.bad(name, "must be a mapping")
        return {} if node is None else node.value

    def texts(self, name: str) -> dict[str, str]:
        """A mapping of strings to strings."""
        members = self.mapping(name)
        for key, node in members.items():
            if not isinstance(node.value, str) or not node.value.isprintable():
                raise Bad(node.line, f"'{key[:80]}' in '{name}' of {self.what} must be a string")
        return {key: node.value for key, node in members.items()}
