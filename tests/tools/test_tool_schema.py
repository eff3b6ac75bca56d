"""The schemas that models see."""

import enum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from a2mcp.tools.schema import json_schema, spec_for
from a2mcp.tools.spec import Lane, Tier


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Change(Closed, rename={"old_text": "oldText"}):
    """One replacement."""

    old_text: Annotated[str, Meta(description="what is there", min_length=1)]
    all: bool = False


class Everything(Closed):
    """Words that belong to the tool, not to its parameters."""

    path: Annotated[str, Meta(description="a path")]
    edits: Annotated[list[Change], Meta(min_length=1, max_length=9)]
    limit: Annotated[int, Meta(ge=1, le=5, description="how many")] | None = None
    offset: Annotated[int | None, Meta(description="from where")] = None
    share: Annotated[float, Meta(gt=0.0, le=1.0)] = 0.5
    above: Annotated[int, Meta(gt=2, lt=9)] = 3
    colour: Annotated[Colour, Meta(description="which")] = Colour.RED
    case: Literal["smart", "exact"] | None = None
    env: dict[str, str] | None = None
    one: Annotated[Change | None, Meta(description="a single one")] = None
    names: list[str] = []
    later: str | msgspec.UnsetType = msgspec.UNSET


def every_node(schema: Any):
    """Every schema inside a schema."""
    yield schema
    for part in schema.get("properties", {}).values():
        yield from every_node(part)
    if "items" in schema:
        yield from every_node(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        yield from every_node(schema["additionalProperties"])


def test_the_whole_schema_of_a_rich_parameter_type():
    """Source: issue (typed params → JSON Schema)."""
    change = {
        "type": "object",
        "properties": {
            "oldText": {"type": "string", "description": "what is there", "minLength": 1},
            "all": {"type": "boolean", "default": False},
        },
        "required": ["oldText"],
        "additionalProperties": False,
    }
    assert json_schema(Everything) == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "a path"},
            "edits": {
                "type": "array",
                "items": change | {"description": "One replacement."},
                "minItems": 1,
                "maxItems": 9,
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": 5, "description": "how many"},
            "offset": {"type": "integer", "description": "from where"},
            "share": {"type": "number", "minimum": 0.0, "maximum": 1.0, "default": 0.5},
            "above": {"type": "integer", "minimum": 3, "maximum": 8, "default": 3},
            "colour": {"type": "string", "enum": ["blue", "red"], "description": "which", "default": "red"},
            "case": {"type": "string", "enum": ["exact", "smart"]},
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
            "one": change | {"description": "a single one"},
            "names": {"type": "array", "items": {"type": "string"}, "default": []},
            "later": {"type": "string"},
        },
        "required": ["path", "edits"],
        "additionalProperties": False,
    }


def test_every_value_has_exactly_one_type_and_nothing_refers_elsewhere():
    """Source: issue (no $ref, no combinators); what OpenAI and Gemini take as function parameters."""
    nodes = list(every_node(json_schema(Everything)))
    assert all(isinstance(node["type"], str) for node in nodes)
    combined = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "const", "exclusiveMinimum", "title"}
    assert not any(combined & node.keys() for node in nodes)


def test_no_parameters_are_a_closed_empty_object():
    """Source: MCP specification (a tool without arguments)."""
    assert json_schema(Closed) == {"type": "object", "properties": {}, "additionalProperties": False}


class Recursive(Closed):
    again: "Recursive | None" = None


class Opens(Closed):
    inner: dict[str, Annotated[list["Loose"], Meta(min_length=1)]]


class Loose(msgspec.Struct):
    a: int = 1


def one_field(kind: Any) -> type[msgspec.Struct]:
    return msgspec.defstruct("One", [("field", kind)], forbid_unknown_fields=True)


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        (one_field(int | str), "union"),
        (one_field(int | str | None), "union"),
        (one_field(Any), "exactly one type"),
        (one_field(list), "exactly one type"),
        (one_field(dict[str, Any]), "exactly one type"),
        (one_field(tuple[int, str]), "prefixItems"),
        (one_field(bytes), "contentEncoding"),
        (one_field(Literal[1, 2]), "strings"),
        (one_field(Annotated[int, Meta(multiple_of=3)]), "multipleOf"),
        (Recursive, "Recursive > Recursive: a recursive type"),
        (Loose, "Loose must be declared with forbid_unknown_fields=True"),
        (Opens, "Loose must be declared with forbid_unknown_fields=True"),
    ],
)
def test_a_type_that_models_cannot_be_told_about_is_refused_when_the_tool_is_defined(params, problem):
    """Source: ours."""
    with pytest.raises(TypeError, match=problem):
        json_schema(params)


def test_a_spec_carries_what_it_was_given():
    """Source: ours."""
    spec = spec_for(
        Closed,
        name="look_up-2",
        title="Look up",
        description="Looks something up.",
        tier=Tier.READ,
        lane=Lane.INLINE,
        idempotent=True,
        open_world=True,
        output_schema={"type": "object"},
    )
    assert (spec.name, spec.title, spec.description) == ("look_up-2", "Look up", "Looks something up.")
    assert (spec.tier, spec.lane, spec.idempotent, spec.open_world) == (Tier.READ, Lane.INLINE, True, True)
    assert (spec.input_schema, spec.output_schema) == (json_schema(Closed), {"type": "object"})


@pytest.mark.parametrize("name", ["", "Read", "a b", "xd://bash", "a" * 25, "1st", "näh", "a\n"])
def test_a_name_that_some_client_would_refuse_is_refused(name):
    """Source: ours (names of at most 24 plain characters survive every client's prefix)."""
    with pytest.raises(ValueError, match="tool name"):
        spec_for(Closed, name=name, title="", description="", tier=Tier.READ)
