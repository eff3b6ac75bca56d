"""Reads JSON with comments and trailing commas, and remembers where everything stands.

Owns the grammar that clients' settings are written in: JSON, ``//`` and ``/* */`` comments, a comma after the last
member, a byte order mark. Changes nothing; ``jsonedit`` does that with the positions found here.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

import msgspec

from a2mcp.connect.errors import BrokenFile

_SPACE: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*[\s\S]*?\*/)*")
_COMMENT: Final = re.compile(r"[ \t\r\n]*(?://[^\r\n]*|/\*[\s\S]*?\*/)")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-])|(?:true|false|null)(?!\w)"
)
_DEEPEST: Final = 200


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A value and where it stands: ``text[start:end]``."""

    start: int
    end: int
    value: Any
    items: tuple[Item, ...] = ()
    """What an object or a list holds, in the order of the text."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A member of an object, or an element of a list, whose ``key`` is None."""

    start: int
    """Where its key begins, or its value in a list."""
    node: Node
    comma: int | None
    """Where the comma after it stands."""
    key: str | None = None


def parse(text: str) -> Node:
    """Read a document.

    Raises:
        BrokenFile: it is none; the error says where.
    """
    reader = _Reader(text)
    node = reader.value(skip(text, 1 if text.startswith("\ufeff") else 0), 0)
    if skip(text, node.end) != len(text):
        reader.fail("the end", skip(text, node.end))
    return node


def skip(text: str, position: int) -> int:
    """Return the first position that is neither white space nor comment."""
    found = _SPACE.match(text, position)
    return found.end() if found else position


def last_word(text: str, start: int, end: int) -> int:
    """Return where, between two tokens, the last comment ends; ``start`` when there is none."""
    while start < end:
        word = _COMMENT.match(text, start, end)
        if word is None:
            break
        start = word.end()
    return start


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def fail(self, expected: str, position: int) -> NoReturn:
        line = self._text.count("\n", 0, position) + 1
        column = position - (self._text.rfind("\n", 0, position) + 1) + 1
        raise BrokenFile(f"line {line}, column {column}: expected {expected}")

    def value(self, at: int, depth: int) -> Node:
        first = self._text[at : at + 1]
        if depth > _DEEPEST:
            self.fail(f"fewer than {_DEEPEST} levels", at)
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._list(at, depth)
        return self._token(_STRING if first == '"' else _SCALAR, at, "a value")

    def _token(self, pattern: re.Pattern[str], at: int, expected: str) -> Node:
        found = pattern.match(self._text, at)
        if found is None:
            self.fail(expected, at)
        try:
            return Node(start=at, end=found.end(), value=json.loads(found.group()))
        except ValueError:
            self.fail(expected, at)

    def _object(self, at: int, depth: int) -> Node:
        items: list[Item] = []
        position = skip(self._text, at + 1)
        while not self._is("}", position):
            key = self._token(_STRING, position, "a key in double quotes" if not items else "a key or }")
            colon = skip(self._text, key.end)
            if not self._is(":", colon):
                self.fail("a colon", colon)
            node = self.value(skip(self._text, colon + 1), depth + 1)
            comma, position = self._separator(node.end, "}")
            items.append(Item(start=key.start, node=node, comma=comma, key=key.value))
        value = {item.key: item.node.value for item in items}
        return Node(start=at, end=position + 1, value=value, items=tuple(items))

    def _list(self, at: int, depth: int) -> Node:
        items: list[Item] = []
        position = skip(self._text, at + 1)
        while not self._is("]", position):
            node = self.value(position, depth + 1)
            comma, position = self._separator(node.end, "]")
            items.append(Item(start=node.start, node=node, comma=comma))
        return Node(start=at, end=position + 1, value=[item.node.value for item in items], items=tuple(items))

    def _separator(self, end: int, closing: str) -> tuple[int | None, int]:
        """Say where the comma stands, if there is one, and where to go on."""
        position = skip(self._text, end)
        if self._is(",", position):
            return position, skip(self._text, position + 1)
        if not self._is(closing, position):
            self.fail(f"a comma or {closing}", position)
        return None, position

    def _is(self, sign: str, position: int) -> bool:
        return self._text.startswith(sign, position)
