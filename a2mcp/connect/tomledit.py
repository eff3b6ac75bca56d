"""Changes one table of a TOML document in its text, and leaves the rest as it was.

A table is added at the end, where every kind of document takes it, and is found again by its header. Whatever a text
can do to fool that (a header inside a multi-line string, the same table written inline) is caught by reading the result
with the real parser: it must say what was wanted and nothing else, or no text is given back.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any, Final

from a2mcp.connect.errors import BrokenFile

_HEADER: Final = re.compile(r"^[ \t]*\[(?!\[)(?P<name>[^\]\r\n]+)\][^\r\n]*$", re.MULTILINE)
_ANY_HEADER: Final = re.compile(r"^[ \t]*\[", re.MULTILINE)
_TRAILING: Final = re.compile(r"^(?:[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\Z))*\Z", re.MULTILINE)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")

Path = tuple[str, str]


def get(text: str, path: Path) -> Any:
    """Return a table; None when it is not there.

    Raises:
        BrokenFile: the text is no TOML.
    """
    holder = _parse(text).get(path[0])
    return holder.get(path[1]) if isinstance(holder, dict) else None


def put(text: str, path: Path, table: dict[str, Any]) -> str:
    """Set a table of strings, numbers, booleans, and lists and tables of them; one that is there already is left so.

    Raises:
        BrokenFile: the text is no TOML, or its layout leaves no place for the table.
    """
    if get(text, path) == table:
        return text
    wanted = _parse(text)
    holder = wanted.setdefault(path[0], {})
    if not isinstance(holder, dict):
        raise BrokenFile(f"'{path[0]}' is no table")
    holder[path[1]] = table
    newline = "\r\n" if "\r\n" in text else "\n"
    written = newline.join([f"[{path[0]}.{_key(path[1])}]", *(f"{key} = {_value(table[key])}" for key in table)])
    span = _span(text, path)
    if span is not None:
        return _checked(text[: span[0]] + written + newline + text[span[1] :], wanted)
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return _checked(text + gap + written + newline, wanted)


def drop(text: str, path: Path) -> str:
    """Remove a table; the text comes back unchanged when it is not there.

    Raises:
        BrokenFile: the text is no TOML, or the table is not written as one that could be taken out.
    """
    wanted = _parse(text)
    if get(text, path) is None:
        return text
    del wanted[path[0]][path[1]]
    span = _span(text, path)
    if span is None:
        raise BrokenFile(f"'{path[0]}.{path[1]}' is not written as a table of its own")
    before, after = text[: span[0]], text[span[1] :]
    if not after.startswith("["):
        before = re.sub(r"(\r?\n)(?:[ \t]*\r?\n)+\Z", r"\1", before)
    # A table that held nothing but ours is there afterwards only if it has a header of its own.
    bare = {key: value for key, value in wanted.items() if key != path[0] or value}
    return _checked(before + after, wanted, bare)


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BrokenFile(str(error)) from error


def _span(text: str, path: Path) -> tuple[int, int] | None:
    """Find the table and the tables inside it, without the comments that come after them."""
    ours = [found for found in _HEADER.finditer(text) if _names(found["name"])[:2] == [*path]]
    if not ours:
        return None
    following = _ANY_HEADER.search(text, ours[-1].end())
    body = text[: following.start()] if following else text
    trailing = _TRAILING.search(body, ours[-1].end())
    return ours[0].start(), trailing.start() if trailing else len(body)


def _names(header: str) -> list[str]:
    """Split a header's dotted name; quoted parts lose their quotes."""
    return [part.strip().strip("\"'") for part in header.split(".")]


def _key(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items()) + " }"
    # JSON's strings, numbers, booleans and flat lists are TOML's.
    return json.dumps(value)


def _checked(text: str, *wanted: dict[str, Any]) -> str:
    try:
        reached = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        reached = None
    if reached not in wanted:
        raise BrokenFile("its layout leaves no safe place for another server")
    return text
