"""From the JSON that a client sent to the parameters that a tool declared, or to one clear ``BadArgument``.

Owns the two ways there. The usual call takes the fast one: a strict decoder, kept per type. Only what that one refuses
is read again, slowly, by ``coercion.py``: it accepts what is certainly meant (``"3"`` for 3) and words everything else.

Of duplicate keys the last one wins, on both ways. ``null`` in the place of all arguments means none.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from a2mcp.errors import BadArgument
from a2mcp.tools.schema import INT64, mentioned

if TYPE_CHECKING:
    from collections.abc import Callable

P = TypeVar("P", bound=msgspec.Struct)

_NONE: Final = b"{}"
_KINDS: Final = {"str": "a string", "array": "a list"}
"""Words for the types whose lengths and patterns only msgspec checks."""


def decode(params: type[P], raw: bytes | msgspec.Raw | None) -> P:
    """Decode the arguments of one call.

    Raises:
        BadArgument: anything about ``raw`` is not what ``params`` says; nothing else is ever raised for bad input.
    """
    read, open_fields = _fast_way(params)
    raw = raw or _NONE  # A call may leave its arguments out.
    try:
        value: P = read(raw)
    except (msgspec.DecodeError, RecursionError):
        return _slow_way(params, raw)
    for name in open_fields:
        if _is_wide(getattr(value, name)):
            return _slow_way(params, raw)
    return value


@functools.cache
def _fast_way(params: type[P]) -> tuple[Callable[[bytes | msgspec.Raw], P], tuple[str, ...]]:
    """Make the strict decoder of a type, and name the fields in which it may leave an integer beyond 64 bits."""
    fields = msgspec.structs.fields(params)
    return msgspec.json.Decoder(params).decode, tuple(field.name for field in fields if _is_open(field.type))


def _slow_way(params: type[P], raw: bytes | msgspec.Raw) -> P:
    from a2mcp.tools import coercion  # noqa: PLC0415 - only for a call that is already odd

    try:
        return _checked(params, coercion.arguments(params, bytes(raw)))
    except RecursionError:
        raise BadArgument("arguments", "fewer levels of nesting", "too many") from None


def _checked(params: type[P], members: dict[str, Any]) -> P:
    """Let msgspec enforce what is left: lengths, patterns, and what ``__post_init__`` says."""
    try:
        return msgspec.convert(members, params)
    except msgspec.ValidationError as error:
        from a2mcp.tools import literal  # noqa: PLC0415 - as above

        problem, _, place = str(error).partition(" - at `$")
        field = place.strip(".`")
        expected, hint = _words(problem)
        literal.bad(field, expected, literal.shown_at(members, field), hint)


def _words(problem: str) -> tuple[str, str]:
    """Reword what msgspec says; what a ``__post_init__`` says stays as it is."""
    if not problem.startswith("Expected "):
        return "a valid value", f"{problem}."
    kind, rest = problem.removeprefix("Expected `").split("`", 1)
    return _KINDS.get(kind, kind) + rest, ""


def _is_open(annotation: Any) -> bool:
    """Tell whether an integer without both bounds stands anywhere in a type."""
    kinds = mentioned(msgspec.inspect.type_info(annotation))
    return any(_has_no_end(kind) for kind in kinds if isinstance(kind, msgspec.inspect.IntType))


def _has_no_end(info: msgspec.inspect.IntType) -> bool:
    return (info.ge is None and info.gt is None) or (info.le is None and info.lt is None)


def _is_wide(value: object) -> bool:
    """Tell whether an integer beyond 64 bits stands anywhere in a decoded value."""
    if isinstance(value, int):
        return value not in INT64
    if isinstance(value, msgspec.Struct):
        return any(_is_wide(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, dict):
        return any(map(_is_wide, value.values()))
    return isinstance(value, list | tuple | set | frozenset) and any(map(_is_wide, value))
