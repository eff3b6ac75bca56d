"""The JSON Schema of a tool's parameters, in the dialect that every model's function calling takes.

Owns what a parameter type may look like. Does not know how arguments are decoded: ``arguments.py`` does that from the
same types. The rules are the common part of what OpenAI and Gemini accept: one closed object, everything inline, one
``type`` for every value, and no keyword outside ``_PORTABLE``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.tools.spec import Lane, Tier, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2mcp.types import JsonObject

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,23}")
"""A tool name. Clients prefix it with the server's name and some cut the whole at 64, hence the small bound."""

INT64: Final = range(-(2**63), 2**63)
"""What an integer argument may be; msgspec itself takes thousands of digits where a field has no bounds."""

_PORTABLE: Final = frozenset(
    {
        "type",
        "description",
        "enum",
        "default",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
    },
)
_INTERNAL: Final = frozenset({"$ref", "anyOf", "title", "exclusiveMinimum", "exclusiveMaximum"})


def spec_for(  # noqa: PLR0913 - the fields of a spec, each named by the caller
    params: type[msgspec.Struct],
    *,
    name: str,
    title: str,
    description: str,
    tier: Tier,
    lane: Lane = Lane.WORKER,
    idempotent: bool = False,
    open_world: bool = False,
    output_schema: JsonObject | None = None,
) -> ToolSpec:
    """Make the spec of a tool from the type of its parameters.

    Raises:
        ValueError: the name is not one that every client takes.
        TypeError: the parameters have no portable schema; see ``json_schema``.
    """
    if NAME.fullmatch(name) is None:
        raise ValueError(f"tool name {name!r} must match {NAME.pattern}")
    return ToolSpec(
        name=name,
        title=title,
        description=description,
        input_schema=json_schema(params),
        tier=tier,
        lane=lane,
        idempotent=idempotent,
        open_world=open_world,
        output_schema=output_schema,
    )


def json_schema(params: type[msgspec.Struct]) -> JsonObject:
    """Write the schema of a parameter type as one closed object without references.

    Raises:
        TypeError: a field has a type that models cannot be told about (a union, ``Any``, a tuple, a recursive
            struct), or a struct takes unknown fields, so that the schema would promise more than decoding keeps.
    """
    (root,), components = msgspec.json.schema_components([params], ref_template="{name}")
    _require_closed(msgspec.inspect.type_info(params))
    schema = _Inliner(components).object(root, ())
    schema.pop("description", None)  # the words about the tool stand in the spec
    return schema


class _Inliner:
    """Rewrites what msgspec generates; holds only the named parts that references point to."""

    def __init__(self, components: dict[str, Any]) -> None:
        self._components = components

    def value(self, node: JsonObject, path: tuple[str, ...]) -> JsonObject:
        """Rewrite the schema of one value; ``path`` is the chain of references that led here."""
        node, path = self._resolve(node, path)
        if strange := node.keys() - _PORTABLE - _INTERNAL:
            raise TypeError(f"{_where(path)}: schema keywords {sorted(strange)} are not portable")
        _close_bounds(node)
        if "enum" in node:
            return _string_enum(node, path)
        if "type" not in node:
            raise TypeError(f"{_where(path)}: a value needs exactly one type")
        if node["type"] == "object":
            return self.object(node, path)
        if node["type"] == "array":
            node["items"] = self.value(node.get("items", {}), path)
        return node

    def object(self, node: JsonObject, path: tuple[str, ...]) -> JsonObject:
        """Rewrite an object: a struct becomes a closed one, a dict keeps the schema of its values."""
        node, path = self._resolve(node, path)
        if "properties" not in node:
            return node | {"additionalProperties": self.value(node.get("additionalProperties", {}), path)}
        closed: JsonObject = {"type": "object"} | _pick(node, "description", "default")
        closed["properties"] = {name: self.value(part, path) for name, part in node["properties"].items()}
        if node["required"]:
            closed["required"] = node["required"]
        return closed | {"additionalProperties": False}

    def _resolve(self, node: JsonObject, path: tuple[str, ...]) -> tuple[JsonObject, tuple[str, ...]]:
        """Follow references and drop ``null``; the words nearest to the field win."""
        node = dict(node)
        while "$ref" in node or "anyOf" in node:
            if "$ref" in node:
                name = node.pop("$ref")
                if name in path:
                    raise TypeError(f"{_where((*path, name))}: a recursive type cannot be written inline")
                path = (*path, name)
                node = self._components[name] | node
            else:
                node = _without_null(node, path)
        node.pop("title", None)
        if node.get("default", ...) is None:
            del node["default"]
        return node, path


def _without_null(node: JsonObject, path: tuple[str, ...]) -> JsonObject:
    """Turn ``anyOf [X, null]`` into X: an optional argument is left out, and null means the same as leaving it out."""
    choices = [choice for choice in node.pop("anyOf") if choice != {"type": "null"}]
    if len(choices) != 1:
        raise TypeError(f"{_where(path)}: a union of types has no portable schema")
    only: JsonObject = choices[0]
    return only | node


def _close_bounds(node: JsonObject) -> None:
    """Write exclusive bounds as inclusive ones, which Gemini knows; decoding still enforces the exact bound."""
    step = 1 if node.get("type") == "integer" else 0
    if "exclusiveMinimum" in node:
        node["minimum"] = node.pop("exclusiveMinimum") + step
    if "exclusiveMaximum" in node:
        node["maximum"] = node.pop("exclusiveMaximum") - step


def _string_enum(node: JsonObject, path: tuple[str, ...]) -> JsonObject:
    if not all(isinstance(member, str) for member in node["enum"]):
        raise TypeError(f"{_where(path)}: the members of an enum must be strings")
    return {"type": "string"} | node


def mentioned(info: msgspec.inspect.Type) -> Iterator[msgspec.inspect.Type]:
    """Yield a type and every type that it is made of; a struct only once, so that recursive ones end."""
    seen: set[type] = set()
    waiting = [info]
    while waiting:
        kind = waiting.pop()
        yield kind
        if not isinstance(kind, msgspec.inspect.StructType):
            waiting.extend(_parts(kind))
        elif kind.cls not in seen:
            seen.add(kind.cls)
            waiting.extend(field.type for field in kind.fields)


def _parts(kind: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    parts = [getattr(kind, name, None) for name in ("item_type", "value_type", "type")]
    return [part for part in parts if part is not None] + list(getattr(kind, "types", ()))


def _require_closed(info: msgspec.inspect.Type) -> None:
    """Refuse a struct that would drop unknown arguments silently."""
    for kind in mentioned(info):
        if isinstance(kind, msgspec.inspect.StructType) and not kind.forbid_unknown_fields:
            raise TypeError(f"{kind.cls.__name__} must be declared with forbid_unknown_fields=True")


def _pick(node: JsonObject, *keys: str) -> JsonObject:
    return {key: node[key] for key in keys if key in node}


def _where(path: tuple[str, ...]) -> str:
    return " > ".join(path) or "parameters"
