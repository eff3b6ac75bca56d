"""Changes one member of a JSON document in its text: everything else, comments and order too, stays as it was.

A change is made of splices, never of a document written anew. Knows no client and no file.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.connect import jsonc
from a2mcp.connect.errors import BrokenFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.connect.jsonc import Item, Node

    Path = tuple[str, ...]

_USUAL_INDENT: Final = "  "


class _Style(msgspec.Struct, frozen=True):
    """How a document is laid out."""

    unit: str
    newline: str


def get(text: str, path: Path) -> Any:
    """Return the value at a path; None when it is not there.

    Raises:
        BrokenFile: the text is no JSON.
    """
    item = _find(jsonc.parse(text), path) if text.strip("\ufeff \t\r\n") else None
    return item.node.value if item else None


def put(text: str, path: Path, value: Any) -> str:
    """Set the value at a path, making the objects on the way to it; what is there already is not laid out anew.

    Raises:
        BrokenFile: the text is no JSON, or something on the way is no object.
    """
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps(_nested(path, value), indent=2, ensure_ascii=False) + "\n"
    node, style = jsonc.parse(text), _style(text)
    for depth, key in enumerate(path):
        _require_object(node, path[:depth])
        item = _member(node, key)
        if item is None:
            return _add(
                text, node, style, f"{json.dumps(key, ensure_ascii=False)}: ", _nested(path[depth + 1 :], value)
            )
        node = item.node
    if node.value == value:
        return text
    return _splice(text, node.start, node.end, _written(value, style, _indent_at(text, node.start)))


def drop(text: str, path: Path) -> str:
    """Remove the member at a path; the text comes back unchanged when it is not there.

    Raises:
        BrokenFile: the text is no JSON.
    """
    return _remove(text, path[:-1], lambda item: item.key == path[-1])


def append(text: str, path: Path, element: Any) -> str:
    """Add an element to the list at a path, making the list when there is none.

    Raises:
        BrokenFile: the text is no JSON, or there is something else than a list.
    """
    item = _find(jsonc.parse(text), path)
    if item is None:
        return put(text, path, [element])
    if not isinstance(item.node.value, list):
        raise BrokenFile(f"'{'.'.join(path)}' is no list")
    return _add(text, item.node, _style(text), "", element)


def discard(text: str, path: Path, wanted: Callable[[Any], bool]) -> str:
    """Remove the elements of the list at a path that are wanted gone."""
    return _remove(text, path, lambda item: item.key is None and wanted(item.node.value))


def _find(node: Node, path: Path) -> Item | None:
    found = None
    for key in path:
        found = _member(node, key)
        if found is None:
            return None
        node = found.node
    return found


def _member(node: Node, key: str) -> Item | None:
    """Of a key that is there twice, the last counts: so do all clients read it."""
    return next((item for item in reversed(node.items) if item.key == key), None)


def _require_object(node: Node, path: Path) -> None:
    if not isinstance(node.value, dict):
        raise BrokenFile(f"'{'.'.join(path)}' is no object" if path else "the document is no object")


def _nested(path: Path, value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


# --- adding ------------------------------------------------------------------------------------------------------


def _add(text: str, node: Node, style: _Style, prefix: str, value: Any) -> str:
    """Put a new item behind the last one, in the layout of its neighbours."""
    closing = node.end - 1
    if node.items and "\n" not in text[node.start : closing]:
        return _add_inline(text, node, prefix + json.dumps(value, ensure_ascii=False))
    outer = _indent_at(text, node.start)
    last = node.items[-1] if node.items else None
    inner = _indent_at(text, last.start) if last and _begins_line(text, last.start) else outer + style.unit
    after = node.start + 1 if last is None else last.node.end if last.comma is None else last.comma + 1
    place = jsonc.last_word(text, after, closing)
    added = style.newline + inner + prefix + _written(value, style, inner)
    added += "," if last is not None and last.comma is not None else ""
    if "\n" not in text[place:closing]:
        added += style.newline + outer
    text = _splice(text, place, place, added)
    return text if last is None or last.comma is not None else _splice(text, last.node.end, last.node.end, ",")


def _add_inline(text: str, node: Node, written: str) -> str:
    last = node.items[-1]
    if last.comma is not None:
        return _splice(text, last.comma + 1, last.comma + 1, f" {written},")
    return _splice(text, last.node.end, last.node.end, f", {written}")


# --- removing ----------------------------------------------------------------------------------------------------


def _remove(text: str, path: Path, unwanted: Callable[[Item], bool]) -> str:
    while True:
        root = jsonc.parse(text)
        holder = _find(root, path)
        node = holder.node if holder else root if not path else None
        index = next((i for i, item in enumerate(node.items) if unwanted(item)), None) if node else None
        if node is None or index is None:
            return text
        text = _cut(text, node, index)


def _cut(text: str, node: Node, index: int) -> str:
    """Take out one item with the white space before it and one comma; comments stay."""
    item, before = node.items[index], node.items[index - 1] if index else None
    gap = node.start + 1 if before is None else before.node.end if before.comma is None else before.comma + 1
    cuts = [(_cut_start(text, gap, item), item.node.end)]
    if item.comma is not None:
        cuts.append((item.comma, item.comma + 1))
    elif before is not None and before.comma is not None:
        cuts.append((before.comma, before.comma + 1))
    for begin, end in sorted(cuts, reverse=True):
        text = _splice(text, begin, end, "")
    return _tidy_empty(text, node.start)


def _cut_start(text: str, gap: int, item: Item) -> int:
    """Say from where on nothing but white space and the item is left, sparing the line end that closes a comment."""
    start = jsonc.last_word(text, gap, item.start)
    end = item.node.end
    behind = text[end:] if item.comma is None else text[end : item.comma] + text[item.comma + 1 :]
    rest = behind.partition("\n")[0]
    in_comment = start > gap and not text.endswith("*/", gap, start)
    return text.index("\n", start) + 1 if in_comment and rest.strip() else start


def _tidy_empty(text: str, start: int) -> str:
    """Close up an object or list in which only white space is left."""
    hollow = re.compile(r"[{\[][ \t\r\n]*[}\]]").match(text, start)
    return _splice(text, start + 1, hollow.end() - 1, "") if hollow else text


# --- layout ------------------------------------------------------------------------------------------------------


def _style(text: str) -> _Style:
    indented = re.search(r"\n([ \t]+)\S", text)
    unit = indented.group(1) if indented else _USUAL_INDENT
    return _Style("\t" if unit.startswith("\t") else unit, "\r\n" if "\r\n" in text else "\n")


def _indent_at(text: str, position: int) -> str:
    line = text.rfind("\n", 0, position) + 1
    found = re.compile(r"[ \t]*").match(text, line)
    return found.group() if found else ""


def _begins_line(text: str, position: int) -> bool:
    return not text[text.rfind("\n", 0, position) + 1 : position].strip(" \t")


def _written(value: Any, style: _Style, indent: str) -> str:
    return json.dumps(value, indent=style.unit, ensure_ascii=False).replace("\n", style.newline + indent)


def _splice(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]
