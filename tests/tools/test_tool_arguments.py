"""Arguments are decoded exactly, coerced only where nothing can be lost, and otherwise explained."""

import enum
import json
import math
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from a2mcp.errors import BadArgument
from a2mcp.tools.arguments import decode
from a2mcp.tools.literal import shown_at


class Closed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Change(Closed, frozen=True, rename={"old_text": "oldText"}):
    old_text: Annotated[str, Meta(min_length=1)]
    all: bool = False

    def __post_init__(self):
        if self.old_text == "forbidden":
            raise ValueError("oldText is a word that is not allowed")


class Params(Closed, frozen=True):
    path: str = "."
    limit: Annotated[int, Meta(ge=1, le=2000)] | None = None
    offset: int = 0
    share: Annotated[float, Meta(ge=0, lt=10)] = 0.5
    deep: bool = True
    names: list[str] = []
    edits: Annotated[list[Change], Meta(max_length=3)] = []
    env: dict[str, str] | None = None
    one: Change | None = None
    colour: Colour = Colour.RED
    case: Literal["smart", "exact"] = "smart"
    word: Annotated[str, Meta(pattern="^[a-z]+$")] = "a"
    any_float: float = 0.0


class Needs(Closed, frozen=True):
    path: str
    limit: Annotated[int, Meta(ge=1, description="how many")]
    case: Annotated[Literal["smart", "exact"], Meta(description="how")]


class Nothing(Closed, frozen=True):
    pass


def sent(**members) -> Params:
    return decode(Params, json.dumps(members).encode())


def refused(raw: bytes | str, params: type = Params) -> BadArgument:
    with pytest.raises(BadArgument) as caught:
        decode(params, raw.encode() if isinstance(raw, str) else raw)
    str(caught.value).encode()  # what is raised can be sent
    return caught.value


def refused_member(name: str, literal: str) -> BadArgument:
    return refused(f'{{"{name}": {literal}}}')


# --- what is taken ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw", [None, b"", msgspec.Raw(), b"{}", b"null", b" null ", msgspec.Raw(b"{}"), msgspec.Raw(b"null")]
)
def test_absent_and_null_arguments_are_no_arguments(raw):
    """Source: seed (params.arguments may be missing)."""
    assert decode(Params, raw) == Params()


def test_well_typed_arguments_are_taken_as_they_are():
    """Source: ours."""
    got = sent(path="é😀", limit=3, share=2, edits=[{"oldText": "a", "all": True}], env={"A": "1"}, colour="blue")
    assert got == Params(
        path="é😀", limit=3, share=2.0, edits=[Change("a", all=True)], env={"A": "1"}, colour=Colour.BLUE
    )


@pytest.mark.parametrize("value", [3, "3", 3.0, "03"])
def test_three_in_any_exact_spelling_is_three(value):
    """Source: try-out 22."""
    assert sent(limit=value).limit == 3


def test_an_exponent_that_is_an_integer_is_one():
    """Source: JSON Schema 2020-12 (1e2 is an integer)."""
    assert decode(Params, b'{"limit": 1e2, "offset": -0.0}') == Params(limit=100, offset=0)


def test_the_largest_and_smallest_integers_survive_both_ways():
    """Source: try-out 22 (nothing is rounded to 2^53)."""
    for number in (2**63 - 1, -(2**63), 9007199254740993):
        assert sent(offset=number).offset == number
        assert sent(offset=str(number)).offset == number
        assert decode(Params, b'{"offset": %d.0}' % number).offset == number


@pytest.mark.parametrize(("value", "meant"), [("true", True), ("false", False), (True, True), (False, False)])
def test_booleans_and_their_two_words_are_booleans(value, meant):
    """Source: try-out 22."""
    assert sent(deep=value).deep is meant


@pytest.mark.parametrize(("value", "meant"), [("2.5", 2.5), (2, 2.0), ("1e-3", 0.001), ("0", 0.0)])
def test_numbers_may_come_as_strings(value, meant):
    """Source: ours (as for integers)."""
    assert sent(share=value).share == meant


def test_a_list_or_object_may_come_as_a_string_of_json():
    """Source: try-out 22 (the stringified list, the same for all tools)."""
    assert sent(names='["a.txt"]').names == ["a.txt"]
    assert sent(env='{"A": "1"}').env == {"A": "1"}
    assert sent(one=' {"oldText": "x", "all": "true"}').one == Change("x", all=True)
    assert sent(edits='[{"oldText": "x"}]').edits == [Change("x")]
    assert sent(edits=['{"oldText": "x"}']).edits == [Change("x")]


def test_a_string_stays_a_string_even_if_it_looks_like_something_else():
    """Source: ours."""
    assert sent(path='["a"]', limit="3").path == '["a"]'
    assert sent(names=["3", "true", "[]"], limit="3").names == ["3", "true", "[]"]


def test_one_argument_that_needs_coercion_leaves_the_others_as_they_are():
    """Source: ours."""
    got = sent(limit="3", deep=False, colour="blue", case="exact", one={"oldText": "a", "all": True}, word="w")
    assert got == Params(limit=3, deep=False, colour=Colour.BLUE, case="exact", one=Change("a", all=True), word="w")
    assert decode(Needs, b'{"path": "p", "limit": "4", "case": "smart"}') == Needs("p", 4, "smart")


def test_null_for_an_argument_that_may_be_left_out_is_leaving_it_out():
    """Source: ours (some clients must send every argument and send null for the rest)."""
    assert sent(limit=None, deep=None, names=None, colour=None, env=None) == Params()


def test_of_duplicate_keys_the_last_wins_on_both_ways():
    """Source: try-out 08 (d)."""
    assert decode(Params, b'{"limit": 1, "limit": 2}').limit == 2
    assert decode(Params, b'{"limit": "x", "limit": "2"}').limit == 2
    assert decode(Params, b'{"deep": "true", "limit": "1", "limit": 2}').limit == 2


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "literal",
    [
        '" 3"',
        '"3.0"',
        '"3.5"',
        '"12px"',
        '""',
        "true",
        "3.5",
        "-1",
        "0",
        '"-1"',
        "9007199254740993",
        '"٣"',
        "[3]",
        "{}",
    ],
)
def test_a_limit_that_is_no_limit_is_refused_by_name(literal):
    """Source: try-out 22."""
    error = refused_member("limit", literal)
    assert (error.field, error.expected) == ("limit", "an integer >= 1 and <= 2000")
    assert error.text.startswith("Argument 'limit': expected an integer >= 1 and <= 2000, received ")


@pytest.mark.parametrize(
    ("literal", "received"), [('"12px"', '"12px"'), ("true", "true"), ("3.50", "3.50"), ("[3]", "a list of 1")]
)
def test_what_was_received_is_shown(literal, received):
    """Source: issue (a bad argument gives field, expected and received)."""
    assert refused_member("limit", literal).received == received


@pytest.mark.parametrize(
    "literal",
    [
        str(2**63),
        str(-(2**63) - 1),
        f'"{2**63}"',
        "1e30",
        "1e999999999",
        "1e99999999999999999999",
        "9" * 6000,
        "-" + "9" * 6000,
        f'"{"9" * 6000}"',
    ],
)
def test_an_integer_beyond_64_bits_is_refused_and_not_echoed_whole(literal):
    """Source: try-out 08 (c)."""
    error = refused_member("offset", literal)
    assert (error.field, error.expected) == ("offset", "an integer within 64 bits")
    assert len(error.received) < 100


class Inner(Closed, frozen=True):
    number: int = 0


class Deep(Closed, frozen=True):
    inner: Inner | None = None
    numbers: list[int] = []
    by_name: dict[str, int] = {}


@pytest.mark.parametrize(
    ("literal", "field"),
    [
        ('{"inner": {"number": %s}}', "inner.number"),
        ('{"numbers": [1, %s]}', "numbers[1]"),
        ('{"by_name": {"a": %s}}', "by_name.a"),
    ],
)
def test_an_integer_beyond_64_bits_is_found_at_any_depth(literal, field):
    """Source: try-out 08 (c)."""
    assert refused(literal % 2**63, Deep).field == field
    decode(Deep, (literal % (2**63 - 1)).encode())


@pytest.mark.parametrize("literal", ['"no"', '"True"', "0", "1", '""', "[]"])
def test_only_two_words_are_booleans(literal):
    """Source: try-out 22."""
    assert refused_member("deep", literal).expected == "true or false"


@pytest.mark.parametrize(
    "literal", ['"NaN"', '"inf"', '"1e400"', "1e400", '" 1"', '"1_0"', '"0x1"', "10", "-0.1", "true"]
)
def test_a_number_is_finite_and_within_its_bounds(literal):
    """Source: ours."""
    error = refused_member("share", literal)
    assert (error.field, error.expected) == ("share", "a number >= 0 and < 10")


def test_a_number_without_bounds_names_none():
    """Source: ours."""
    assert refused_member("any_float", '"x"').expected == "a number"


@pytest.mark.parametrize("literal", ["3", "true", "[]", "{}", "1.5"])
def test_a_string_is_never_made_from_something_else(literal):
    """Source: ours."""
    assert refused_member("path", literal).expected == "a string"


@pytest.mark.parametrize(
    ("literal", "field", "expected"),
    [
        ('{"names": "a.txt"}', "names", "a list"),
        ('{"names": "[\\"a.txt\\""}', "names", "a list"),
        ('{"names": {}}', "names", "a list"),
        ('{"names": ["a", 3]}', "names[1]", "a string"),
        ('{"env": "[]"}', "env", "an object"),
        ('{"env": []}', "env", "an object"),
        ('{"env": {"A": 1}}', "env.A", "a string"),
        ('{"edits": [{"oldText": "a"}, {}]}', "edits[1].oldText", "a string"),
        ('{"edits": [{"oldText": ""}]}', "edits[0].oldText", "a string of length >= 1"),
        ('{"edits": "[{\\"oldText\\": 1}]"}', "edits[0].oldText", "a string"),
        ('{"edits": [{"oldText": "a", "al": true}]}', "edits[0].al", "one of oldText, all"),
        ('{"one": [1]}', "one", "an object"),
        ('{"colour": "green"}', "colour", "one of red, blue"),
        ('{"case": 1}', "case", "one of exact, smart"),
        ('{"word": "A"}', "word", "a string matching regex '^[a-z]+$'"),
    ],
)
def test_the_path_of_a_nested_argument_is_named(literal, field, expected):
    """Source: issue (field, expected and received)."""
    error = refused(literal)
    assert (error.field, error.expected) == (field, expected)


def test_a_list_that_is_too_long_is_told_apart():
    """Source: ours."""
    error = refused(json.dumps({"edits": [{"oldText": "a"}] * 4}))
    assert (error.field, error.expected, error.received) == ("edits", "a list of length <= 3", "a list of 4")


def test_what_a_parameter_type_checks_itself_is_passed_on():
    """Source: ours."""
    error = refused('{"edits": [{"oldText": "forbidden"}]}')
    assert error.field == "edits[0]"
    assert error.hint == "oldText is a word that is not allowed."


@pytest.mark.parametrize("raw", ["[]", '"x"', "3", "true", '"{}"'])
def test_arguments_that_are_no_object_are_refused(raw):
    """Source: ours."""
    error = refused(raw)
    assert (error.field, error.expected) == ("arguments", "an object")


def test_an_unknown_argument_lists_the_known_ones_and_guesses():
    """Source: ours (a misspelt argument is never dropped silently)."""
    error = refused('{"limt": 3}')
    assert error.field == "limt"
    assert error.expected.startswith("one of path, limit, offset, ")
    assert error.hint == "Did you mean 'limit'?"
    assert refused('{"zzzzzz": 3}').hint == ""
    assert refused('{"a": 1}', Nothing).expected == "no arguments"


@pytest.mark.parametrize(
    ("raw", "field", "expected"),
    [
        (b"{}", "path", "a string"),
        (b'{"path": "a"}', "limit", "an integer"),
        (b'{"path": "a", "limit": "1"}', "case", "one of exact, smart"),
    ],
)
def test_a_missing_argument_is_named(raw, field, expected):
    """Source: ours."""
    error = refused(raw, Needs)
    assert (error.field, error.expected, error.received) == (field, expected, "nothing")


def test_null_does_not_stand_for_a_required_argument():
    """Source: ours."""
    error = refused('{"path": null}', Needs)
    assert (error.field, error.received) == ("path", "null")


# --- poisonous JSON ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "field", "received"),
    [
        (b'{"path": "x\\udc00y"}', "path", '"x\\udc00y"'),
        (b'{"path": "\\ud83d"}', "path", '"\\ud83d"'),
        (b'{"\\ud83d": 1}', "\\ud83d", '"\\ud83d"'),
        (b'{"env": {"A": "\\udfff"}}', "env.A", '"\\udfff"'),
        (b'{"names": ["a", "\\uD800"]}', "names[1]", '"\\ud800"'),
        (b'{"names": "[\\"\\\\ud800\\"]"}', "names[0]", '"\\ud800"'),
        (b'{"path": "\xff"}', "path", '"\\udcff"'),
        (b'{"path": "\xed\xa0\x80"}', "path", '"\\udced\\udca0\\udc80"'),
    ],
)
def test_half_a_character_is_refused_naming_the_argument_in_escaped_form(raw, field, received):
    """Source: try-out 08 (a)."""
    error = refused(raw)
    assert (error.field, error.expected, error.received) == (field, "valid Unicode text", received)


def test_a_whole_pair_of_surrogates_is_a_character():
    """Source: ours."""
    assert decode(Params, b'{"path": "\\ud83d\\ude00", "limit": "3"}') == Params(path="😀", limit=3)


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b'{"a"}',
        b"NaN",
        b'{"limit": NaN}',
        b'{"limit": -Infinity}',
        b"\xef\xbb\xbf{}",
        b'{"path": "\x01"}',
        b"{} {}",
    ],
)
def test_text_that_is_no_json_is_refused(raw):
    """Source: try-out 08 (b)."""
    error = refused(raw)
    assert (error.field, error.expected, error.received) == ("arguments", "a JSON object", "malformed JSON")


@pytest.mark.parametrize("raw", [b"[" * 5000 + b"]" * 5000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000])
def test_too_many_levels_have_a_defined_answer(raw):
    """Source: try-out 08 (e)."""
    assert refused(raw).field == "arguments"
    assert refused(b'{"names": ' + raw + b"}").field in {"arguments", "names[0]"}


def test_nothing_long_or_unprintable_is_echoed():
    """Source: ours (the text goes to a model, a log and a terminal)."""
    error = refused(json.dumps({"limit": "\x1b[31m\u202e" + "x" * 10_000, "path": "ok"}))
    assert len(error.received) < 100
    assert error.received.startswith('"\\u001b[31m\\u202exxx')
    assert error.received.endswith("(10006 characters)")
    assert len(str(refused(json.dumps({"\ud800" * 5000: 1})))) < 300
    assert len(str(refused(json.dumps({"k" * 5000: 1})))) < 400
    deep = {"a": "\ud800"}
    for _ in range(100):
        deep = {"a" * 50: deep}
    assert len(str(refused(json.dumps(deep)))) < 400


def test_a_place_that_cannot_be_found_again_is_not_shown():
    """Source: ours."""
    assert shown_at({"a": [1]}, "a[1].b") == "something else"


# --- properties -------------------------------------------------------------------------------------------------

NAMES = st.sampled_from([*Params.__struct_fields__, "oldText", "all", "limt"]) | st.text(max_size=5)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.sampled_from(["3", "true", "[]", "{}", '["a"]', '{"oldText": "a"}', "[1", "1e5", "1e999999999"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def decoded_or_words(params: type, raw: bytes) -> object:
    """The parameters, or the encoded text of the only error that may be raised."""
    try:
        return decode(params, raw)
    except BadArgument as error:
        return str(error).encode()


@given(st.dictionaries(NAMES, VALUES, max_size=4) | VALUES)
def test_any_json_gives_parameters_or_bad_argument(value):
    """Source: issue (property tests), ours."""
    raw = json.dumps(value).encode()
    for params in (Params, Needs, Nothing):
        got = decoded_or_words(params, raw)
        assert isinstance(got, params) or len(got) < 1000


@given(st.binary(max_size=60) | st.text('{}[]",:\\u0123456789eE.-dDtrufalsn limtoe', max_size=60).map(str.encode))
def test_any_bytes_give_parameters_or_bad_argument(raw):
    """Source: issue (property tests), ours."""
    assert isinstance(decoded_or_words(Params, raw), Params | bytes)


@given(st.integers(-(2**63), 2**63 - 1), st.booleans(), st.floats(0, 9.99), st.lists(st.text()))
def test_stringified_arguments_mean_the_same_as_plain_ones(number, flag, share, names):
    """Source: ours."""
    plain = sent(offset=number, deep=flag, share=share, names=names)
    quoted = sent(offset=str(number), deep=json.dumps(flag), share=json.dumps(share), names=json.dumps(names))
    assert plain == quoted
    assert math.isfinite(plain.share)
