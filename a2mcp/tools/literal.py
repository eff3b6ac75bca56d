"""JSON as it was written: numbers keep their digits, broken text is found where it stands, and all of it can be shown.

Owns the words and paths of ``BadArgument``. What is echoed is escaped and short, because it goes to a model, a log and
a terminal. Does not know types: ``coercion.py`` does.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

import msgspec

from a2mcp.errors import BadArgument

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MAY_BE_BROKEN: Final = re.compile(r"[\ud800-\udfff]|\\u[dD]")
_STEP: Final = re.compile(r"([^.\[\]]+)|\[([0-9]+)\]")
_SHOWN: Final = 60
_PATH: Final = 120


class Number(msgspec.Struct, frozen=True):
    """A JSON number as it was written: neither digits nor exactness are lost before the type is known."""

    literal: str


def parsed(text: str, path: str, expected: str) -> Any:
    """Parse JSON that stands at ``path``; of duplicate keys the last one wins.

    Raises:
        BadArgument: it is not JSON, or has text in it that is not Unicode.
        RecursionError: it is nested too deeply.
    """
    try:
        value = json.loads(text, parse_int=Number, parse_float=Number, parse_constant=_no_constant)
    except ValueError:
        bad(path, expected, shown(text) if path else "malformed JSON")
    if _MAY_BE_BROKEN.search(text):
        _refuse_broken_text(value, path)
    return value


def bad(path: str, expected: str, received: str, hint: str = "") -> NoReturn:
    """Raise the error about the argument at ``path``; an empty path stands for all arguments together."""
    raise BadArgument(path or "arguments", expected, received, hint=hint)


def at(path: str, key: str | int) -> str:
    """Name a member of what stands at ``path``. A path does not grow without end: the deepest names are left out."""
    if len(path) > _PATH:
        return path
    if isinstance(key, int):
        return f"{path}[{key}]"
    name = _escaped(key)
    return f"{path}.{name}" if path else name


def shown(value: Any) -> str:
    """Show a value in an error text: strings as JSON, and nothing longer than about 80 characters."""
    if isinstance(value, str):
        return f'"{_escaped(value)}"' + (f" ({len(value)} characters)" if len(value) > _SHOWN else "")
    if isinstance(value, Number):
        digits = value.literal
        return digits if len(digits) <= _SHOWN else f"{digits[:_SHOWN]}… ({len(digits)} characters)"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return json.dumps(value)


def shown_at(value: Any, path: str) -> str:
    """Show what stands at a path, or say that it cannot be told."""
    for key, index in _STEP.findall(path):
        try:
            value = value[int(index)] if index else value[key]
        except (LookupError, TypeError):
            return "something else"
    return shown(value)


def _escaped(text: str) -> str:
    """Write text as inside a JSON string, cut to ``_SHOWN``, with everything escaped that does not print."""
    # At most six times as long as it was, so only so much of it needs a look.
    whole = "".join(map(_escape, text[: _SHOWN + 1]))
    return whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}…"


def _escape(character: str) -> str:
    return character if character.isprintable() and character not in '"\\' else json.dumps(character)[1:-1]


def _no_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _refuse_broken_text(value: Any, path: str) -> None:
    """Refuse text that no file name, file or reply can carry, naming the argument it stands in."""
    if isinstance(value, str):
        if _SURROGATE.search(value):
            bad(path, "valid Unicode text", shown(value))
    elif isinstance(value, dict):
        for key, member in value.items():
            _refuse_broken_text(key, at(path, key))
            _refuse_broken_text(member, at(path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_broken_text(item, at(path, index))
