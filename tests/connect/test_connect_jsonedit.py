"""A member is put into a client's JSON and taken out again, and nothing else in the text changes."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.connect import jsonc, jsonedit
from a2mcp.connect.errors import BrokenFile

PATH = ("mcpServers", "a2mcp")
ENTRY = {"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer ${X}"}}

CURSOR = """{
  // servers of the team
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "files"] }, /* the old one */
    "web": {
      "url": "https://example.com/mcp", // not a comment: "//"
    },
  },
}
"""


def test_a_server_joins_the_others_and_leaves_no_trace():
    """Issue §9: a merge that keeps comments and order; disconnect restores."""
    text = jsonedit.put(CURSOR, PATH, ENTRY)
    assert [*jsonc.parse(text).value["mcpServers"]] == ["files", "web", "a2mcp"]
    assert jsonedit.get(text, PATH) == ENTRY
    for line in CURSOR.splitlines():
        assert line in text.splitlines()
    assert jsonedit.drop(text, PATH) == CURSOR


def test_the_layout_is_that_of_the_neighbours():
    """Issue §9: a person reads this file."""
    text = jsonedit.put('{\r\n\t"mcpServers": {\r\n\t\t"a": 1\r\n\t}\r\n}\r\n', PATH, {"url": "u"})
    assert text == (
        '{\r\n\t"mcpServers": {\r\n\t\t"a": 1,\r\n\t\t"a2mcp": {\r\n\t\t\t"url": "u"\r\n\t\t}\r\n\t}\r\n}\r\n'
    )
    assert jsonedit.put('{"a": [1],}', ("b",), 2) == '{"a": [1], "b": 2,}'
    assert jsonedit.put('{"mcpServers":{"a":1}}', PATH, 2) == '{"mcpServers":{"a":1, "a2mcp": 2}}'


def test_a_comment_behind_the_last_member_stays_with_it():
    """Issue §9: comments."""
    text = jsonedit.put('{\n  "a": 1 // of a\n}', ("b",), 2)
    assert text == '{\n  "a": 1, // of a\n  "b": 2\n}'
    assert jsonedit.drop(text, ("b",)) == '{\n  "a": 1 // of a\n}'


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{ "a": 1, // note\n  "b": 2 }', '{ "a": 1 // note\n }'),
        ('{ "a": 1, // note\n  "b": 2 /* x\n y */ }', '{ "a": 1 // note\n /* x\n y */ }'),
        ('{ /* k */ "b": 2, "c": 3 }', '{ /* k */ "c": 3 }'),
        ('{"b": 2}', "{}"),
        ('{\n  "b": 2,\n}', "{}"),
        ('{\n  // why\n  "b": 2 // because\n}', "{\n  // why\n // because\n}"),
        ('{ // why\n"b": 2/* // so\n*/,\n"c": 3 }', '{ // why\n/* // so\n*/\n"c": 3 }'),
        ('{ // why\r\n"b": 2/* so */,\r\n"c": 3 }', '{ // why\r\n/* so */\r\n"c": 3 }'),
    ],
)
def test_whatever_stands_around_a_member_what_is_left_is_json(text, left):
    """Ours: a line comment must not swallow what came after the member."""
    assert jsonedit.drop(text, ("b",)) == left
    jsonc.parse(left)


def test_a_file_that_is_empty_or_not_there_becomes_a_document():
    """Issue §9: a client that was never started has no file."""
    for empty in ("", "\n", "\ufeff"):
        assert json.loads(jsonedit.put(empty, PATH, ENTRY)) == {"mcpServers": {"a2mcp": ENTRY}}


def test_what_says_the_same_already_is_not_laid_out_anew():
    """Issue §9: idempotent."""
    text = '{"mcpServers": {"a2mcp": {"headers": {"Authorization":"Bearer ${X}"},"url":"http://127.0.0.1:1/mcp"}}}'
    assert jsonedit.put(text, PATH, ENTRY) == text


def test_a_byte_order_mark_stays():
    """Ours: what some editors write."""
    assert jsonedit.put('\ufeff{"a": 1}', ("b",), 2) == '\ufeff{"a": 1, "b": 2}'


def test_of_a_key_that_is_there_twice_the_last_one_counts():
    """Ours: so do all parsers of JSON that keep one."""
    text = '{"b": 1, "b": 2}'
    assert jsonedit.get(text, ("b",)) == 2
    assert jsonedit.put(text, ("b",), 3) == '{"b": 1, "b": 3}'
    assert jsonedit.drop(text, ("b",)) == "{}"


def test_elements_join_and_leave_a_list():
    """Issue §9: the inputs of VS Code."""
    text = '{\n  "inputs": [\n    {"id": "x"} // mine\n  ]\n}'
    more = jsonedit.append(text, ("inputs",), {"id": "y"})
    assert [one["id"] for one in jsonc.parse(more).value["inputs"]] == ["x", "y"]
    assert jsonedit.discard(more, ("inputs",), lambda one: one["id"] == "y") == text
    assert jsonc.parse(jsonedit.append("{}", ("inputs",), 1)).value == {"inputs": [1]}


@pytest.mark.parametrize(
    "text",
    [
        "{", '{"a": }', '{"a" 1}', '{"a": 1 "b": 2}', "{a: 1}", "{'a': 1}", "[1,,2]", '{"a": 01}', '{"a": NaN}',
        '{"a": 1} x', '{"a": "\n"}', '{"a": "\\x"}', "{/* }", "[" * 5000, '{"a": ' * 300, "nul", '{"a": tru}', ",",
        '{"a": ' + "9" * 5000 + "}",
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused_with_the_place(text):
    """Issue §9: a broken file is reported."""
    with pytest.raises(BrokenFile, match=r"line \d+, column \d+: expected "):
        jsonedit.put(text, PATH, ENTRY)


@pytest.mark.parametrize("text", ["[]", '"x"', '{"mcpServers": []}', '{"mcpServers": null}'])
def test_something_else_in_the_place_of_the_servers_is_refused(text):
    """Issue §9: a broken file is left alone."""
    with pytest.raises(BrokenFile, match="no object"):
        jsonedit.put(text, PATH, ENTRY)
    with pytest.raises(BrokenFile, match="no list"):
        jsonedit.append('{"inputs": {}}', ("inputs",), 1)


# --- any document ------------------------------------------------------------------------------------------------

SPACE = st.lists(
    st.sampled_from([" ", "\n", "\n  ", "\t", '// "c" {},\n', "//\n", "/* c, } */", "/**/", "/* // \n*/"]), max_size=3
).map("".join)  # fmt: skip
KEYS = st.text(alphabet='ab/*,{}:"\\é ', max_size=4) | st.sampled_from(["mcpServers", "a2mcp"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.floats(-9, 9, allow_nan=False)
    | st.text(alphabet='a"\\/\n é\u2028😀', max_size=5)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4).map(
    lambda found: {key: value if key != "mcpServers" or isinstance(value, dict) else {} for key, value in found.items()}
)


def written(draw, value):
    """Write a value with comments and white space wherever the grammar takes them."""
    if isinstance(value, dict):
        return grouped(
            draw, "{}", [json.dumps(k) + draw(SPACE) + ":" + draw(SPACE) + written(draw, v) for k, v in value.items()]
        )
    if isinstance(value, list):
        return grouped(draw, "[]", [written(draw, one) for one in value])
    return json.dumps(value)


def grouped(draw, signs, items):
    inner = ",".join(draw(SPACE) + item + draw(SPACE) for item in items)
    if items and draw(st.booleans()):
        inner += "," + draw(SPACE)
    return signs[0] + (inner or draw(SPACE)) + signs[1]


def comments(text):
    """What the comments say; where strings are is left to the scanner."""
    found = re.findall(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*[\s\S]*?\*/', text)
    return "".join(re.sub(r"\s", "", one) for one in found if not one.startswith('"'))


@given(st.data(), DOCUMENTS)
def test_any_document_keeps_everything_but_the_member(data, document):
    """Issue §9, as a property: put and drop change one member and no other, and lose no comment."""
    text = data.draw(SPACE) + written(data.draw, document) + data.draw(SPACE)
    assert jsonc.parse(text).value == document
    there = jsonedit.put(text, PATH, ENTRY)
    servers = document.get("mcpServers", {})
    assert jsonc.parse(there).value == {**document, "mcpServers": {**servers, "a2mcp": ENTRY}}
    assert jsonedit.put(there, PATH, ENTRY) == there
    gone = jsonedit.drop(there, PATH)
    assert jsonc.parse(gone).value == {**document, "mcpServers": {k: v for k, v in servers.items() if k != "a2mcp"}}
    if "a2mcp" not in servers:
        assert comments(gone) == comments(there) == comments(text)


@given(st.text(alphabet='{}[]",:/*\\ \n01truefalsn-.eE', max_size=30))
def test_any_text_is_read_or_refused(text):
    """Ours: nothing but BrokenFile comes out, and what is plain JSON is read as the real parser reads it."""
    try:
        expected = json.loads(text)
    except ValueError:
        try:
            jsonc.parse(text)
        except BrokenFile:
            return
        return
    assert jsonc.parse(text).value == expected
