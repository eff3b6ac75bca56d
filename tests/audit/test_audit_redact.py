"""Folding payloads out of arguments."""

import copy
import hashlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.audit.redact import MAX_DEPTH, MAX_ITEMS, TOO_DEEP, fold, redact

WIDE = "\N{GRINNING FACE}"


def folded(text):
    return f"<len:{len(text)},sha256:{hashlib.sha256(text.encode()).hexdigest()[:8]}>"


def nested(value, depth):
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


def innermost(value):
    while isinstance(value, dict | list):
        value = value["k"] if isinstance(value, dict) else value[0]
    return value


@pytest.mark.parametrize("letter", ["x", "é", WIDE])
@pytest.mark.parametrize("length", [119, 120, 121])
@pytest.mark.parametrize("depth", [0, 1, 3, 31, 32, 33, 200])
def test_strings_over_120_characters_are_folded_down_to_32_levels(letter, length, depth):
    """Row U08; seed, audit: at any depth, characters are the unit, deeper than 32 is not walked."""
    text = letter * length
    got = innermost(redact(nested(text, depth)))
    expected = folded(text) if length > 120 else text
    assert got == (expected if depth <= 32 else TOO_DEEP)


def test_the_body_of_an_edit_is_never_written_out():
    """Seed, audit: the file's body is at args.edits[0].oldText."""
    body = "secret " * 100
    got = redact({"path": "/a", "edits": [{"oldText": body, "newText": "short"}]})
    assert got == {"path": "/a", "edits": [{"oldText": folded(body), "newText": "short"}]}


def test_long_keys_are_folded_too():
    """Ours: a payload can be a key."""
    key = "k" * 121
    assert redact({key: 1}) == {folded(key): 1}


def test_many_members_are_counted_not_copied():
    """Ours: a huge array or object costs no more than its first hundred members."""
    array, members = list(range(250)), {str(n): n for n in range(250)}
    assert redact(array) == [*range(MAX_ITEMS), "<more:150>"]
    assert redact(members) == {**{str(n): n for n in range(MAX_ITEMS)}, "<more>": 150}


def test_a_value_deeper_than_the_stack_does_not_end_the_walk():
    """Row U08: never RecursionError."""
    assert innermost(redact(nested("x", 100_000))) == TOO_DEEP


@pytest.mark.parametrize(
    "value", ["\ud800", "x\udfff" * 50, {"\ud800": "\ud83d"}, 2**64, [-(10**5000)], {1, 2}, b"x" * 300]
)
def test_what_json_cannot_carry_still_can_be_encoded(value):
    """Tryout a and f: a lone surrogate or a very long number never fails a record."""
    json.loads(msgspec.json.encode(redact(value)))


def test_a_kept_string_is_the_string():
    """Ours: nothing short is changed."""
    assert fold("naïve \N{GRINNING FACE}\n") == "naïve \N{GRINNING FACE}\n"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=200),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=130), inner, max_size=4)
    ),
    max_leaves=30,
)


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from (key, *texts(member))
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


@given(VALUES, st.integers(0, MAX_DEPTH + 3))
def test_redacting_is_pure_and_leaves_no_long_string(value, depth):
    """Row U08: the arguments are unchanged, the result is encodable, and nothing in it is over 120 characters."""
    value = nested(value, depth)
    before = copy.deepcopy(value)
    got = redact(value)
    assert repr(value) == repr(before)
    assert all(len(text) <= 120 for text in texts(got))
    json.loads(msgspec.json.encode(got))
