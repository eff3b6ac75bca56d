"""The slow reading of arguments: accepts what is certainly meant, and says in words what is wrong with the rest.

Owns which JSON value may stand for which type, the same for every tool:

- an integer: ``3``, ``3.0``, ``"3"``; within 64 bits
- a number: any finite JSON number, or a string that is exactly one
- a boolean: ``true``, ``false``, or those words as strings
- a list or an object: itself, or a string of JSON that is exactly one (models like to send those)
- a string: only a string
- ``null`` for an argument that may be left out: as if it were left out

Does not know tools, and never returns a guess.
"""

from __future__ import annotations

import decimal
import difflib
import functools
import math
import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import inspect

from a2mcp.tools.literal import Number, at, bad, parsed, shown
from a2mcp.tools.schema import INT64

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import msgspec

_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_DIGITS: Final = len(str(INT64.stop))
_SLIP: Final = 64
"""A longer word is nobody's typing slip, and comparing it costs its length squared."""


def arguments(params: type[msgspec.Struct], raw: bytes) -> Any:
    """Read the arguments of a call into plain values of the right types.

    Raises:
        BadArgument: they are not one JSON object that fits.
        RecursionError: they are nested too deeply.
    """
    # Bytes that are not UTF-8 become lone surrogates, so that the argument they stand in can be named.
    value = parsed(raw.decode("utf-8", "surrogateescape"), "", "a JSON object")
    return _value(_type_info(params), {} if value is None else value, "")


_type_info = functools.cache(inspect.type_info)


# --- one function per kind of type ------------------------------------------------------------------------------


def _value(info: inspect.Type, value: Any, path: str) -> Any:
    if isinstance(info, inspect.Metadata):
        return _value(info.type, value, path)
    if isinstance(info, inspect.UnionType):
        return None if value is None else _value(_only(info), value, path)
    return _TAKES[type(info)](info, value, path)


def _only(info: inspect.UnionType) -> inspect.Type:
    """Give the one type beside null: any other union was refused when the tool's schema was written."""
    (kind,) = (kind for kind in info.types if not isinstance(kind, inspect.NoneType))
    return kind


def _integer(info: inspect.IntType, value: Any, path: str) -> int:
    number = None
    if isinstance(value, Number):
        number = _whole(value.literal)
    elif isinstance(value, str) and _INTEGER.fullmatch(value):
        number = int(value)
    if number is None or number not in INT64 or not _within(info, number):
        bad(path, "an integer" + _bounds(info), shown(value))
    return number


def _whole(literal: str) -> int | None:
    """Read a JSON number that is mathematically an integer, exactly; None for any other and for absurdly large ones."""
    if _INTEGER.fullmatch(literal):
        return int(literal)
    try:
        exact = decimal.Decimal(literal)
    except decimal.InvalidOperation:
        return None
    # The size is looked at first: 1e999999 would be a number of a million digits.
    return int(exact) if exact.adjusted() <= _DIGITS and exact == exact.to_integral_value() else None


def _number(info: inspect.FloatType, value: Any, path: str) -> float:
    literal = value.literal if isinstance(value, Number) else value
    number = float(literal) if isinstance(literal, str) and _NUMBER.fullmatch(literal) else math.nan
    if not math.isfinite(number) or not _within(info, number):
        bad(path, "a number" + _bounds(info), shown(value))
    return number


def _boolean(_: inspect.BoolType, value: Any, path: str) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value not in {"true", "false"}:
        bad(path, "true or false", shown(value))
    return value == "true"


def _string(_: inspect.StrType, value: Any, path: str) -> str:
    if not isinstance(value, str):
        bad(path, "a string", shown(value))
    return value


def _choice(info: inspect.EnumType | inspect.LiteralType, value: Any, path: str) -> Any:
    known = _known(info)
    if not isinstance(value, str) or value not in known:
        hint = _did_you_mean(value, known) if isinstance(value, str) else ""
        bad(path, f"one of {', '.join(known)}", shown(value), hint)
    return value


def _known(info: inspect.EnumType | inspect.LiteralType) -> list[str]:
    members = info.values if isinstance(info, inspect.LiteralType) else [member.value for member in info.cls]
    return [str(member) for member in members]


def _list(info: inspect.CollectionType, value: Any, path: str) -> list[Any]:
    value = _unquoted(value, list, path)
    if not isinstance(value, list):
        bad(path, "a list", shown(value))
    return [_value(info.item_type, item, at(path, index)) for index, item in enumerate(value)]


def _dict(info: inspect.DictType, value: Any, path: str) -> dict[str, Any]:
    value = _unquoted(value, dict, path)
    if not isinstance(value, dict):
        bad(path, "an object", shown(value))
    return {key: _value(info.value_type, member, at(path, key)) for key, member in value.items()}


def _struct(info: inspect.StructType, value: Any, path: str) -> dict[str, Any]:
    value = _unquoted(value, dict, path) if path else value
    if not isinstance(value, dict):
        bad(path, "an object", shown(value))
    _refuse_unknown(value, [field.encode_name for field in info.fields], path)
    members = {}
    for field in info.fields:
        name = field.encode_name
        if name in value and not (value[name] is None and not field.required):
            members[name] = _value(field.type, value[name], at(path, name))
        elif field.required:
            bad(at(path, name), _kind(field.type), "nothing", "This argument is required.")
    return members


_TAKES: Final[dict[type, Callable[[Any, Any, str], Any]]] = {
    inspect.IntType: _integer,
    inspect.FloatType: _number,
    inspect.BoolType: _boolean,
    inspect.StrType: _string,
    inspect.EnumType: _choice,
    inspect.LiteralType: _choice,
    inspect.ListType: _list,
    inspect.VarTupleType: _list,
    inspect.SetType: _list,
    inspect.FrozenSetType: _list,
    inspect.DictType: _dict,
    inspect.StructType: _struct,
}
_KINDS: Final[dict[type, str]] = {
    inspect.IntType: "an integer",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.StrType: "a string",
    inspect.ListType: "a list",
    inspect.DictType: "an object",
    inspect.StructType: "an object",
}


def _unquoted(value: Any, kind: type, path: str) -> Any:
    """Open a string that holds exactly the list or object that is asked for."""
    start, words = ("[", "a list") if kind is list else ("{", "an object")
    if not isinstance(value, str) or not value.lstrip().startswith(start):
        return value
    return parsed(value, path, words)


def _refuse_unknown(value: Iterable[str], known: list[str], path: str) -> None:
    for name in value:
        if name not in known:
            expected = f"one of {', '.join(known)}" if known else "no arguments"
            bad(at(path, name), expected, "an unknown name", _did_you_mean(name, known))


# --- words ------------------------------------------------------------------------------------------------------


def _did_you_mean(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1) if len(word) <= _SLIP else []
    return f"Did you mean '{near[0]}'?" if near else ""


def _kind(info: inspect.Type) -> str:
    while isinstance(info, inspect.Metadata):
        info = info.type
    if isinstance(info, inspect.EnumType | inspect.LiteralType):
        return f"one of {', '.join(_known(info))}"
    return _KINDS.get(type(info), "a value")


def _within(info: inspect.IntType | inspect.FloatType, number: float) -> bool:
    return (
        (info.ge is None or number >= info.ge)
        and (info.le is None or number <= info.le)
        and (info.gt is None or number > info.gt)
        and (info.lt is None or number < info.lt)
    )


def _bounds(info: inspect.IntType | inspect.FloatType) -> str:
    signs = {">=": info.ge, ">": info.gt, "<=": info.le, "<": info.lt}
    parts = [f"{sign} {bound}" for sign, bound in signs.items() if bound is not None]
    if not parts:
        return " within 64 bits" if isinstance(info, inspect.IntType) else ""
    return " " + " and ".join(parts)
