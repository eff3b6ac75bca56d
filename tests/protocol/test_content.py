"""A result goes over the wire as valid JSON, whatever a tool made of it."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.protocol.content import encode_result
from a2mcp.protocol.versions import LEGACY, MODERN
from a2mcp.protocol.versions.bridge import BRIDGE
from a2mcp.tools.result import Audio, Image, ResourceLink, Result, Text, text

PLAIN = LEGACY["2025-03-26"]
"""A dialect without data beside the text."""


def test_a_kind_of_content_that_the_dialect_does_not_know_becomes_text():
    """Source: seed (tools/call: a third kind is folded into the text of its JSON)."""
    result = Result(content=(Audio("UklGRg==", "audio/wav"), ResourceLink(uri="a:b", name="b")))

    on_the_bridge = json.loads(encode_result(result, BRIDGE))["content"]
    on_the_newest = json.loads(encode_result(result, LEGACY["2025-11-25"]))["content"]

    assert [block["type"] for block in on_the_bridge] == ["text", "text"]
    assert json.loads(on_the_bridge[0]["text"]) == on_the_newest[0]
    assert [block["type"] for block in on_the_newest] == ["audio", "resource_link"]


def test_every_modern_result_says_that_it_is_complete_and_who_answers():
    """Source: spec 2026-07-28 (resultType, serverInfo)."""
    encoded = json.loads(encode_result(text("hi"), MODERN["2026-07-28"]))

    assert encoded["resultType"] == "complete"
    assert encoded["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "a2mcp"


def test_a_result_is_content_and_is_error():
    """Source: seed (tools/call, exit 1)."""
    assert encode_result(text("hi"), PLAIN) == b'{"content":[{"type":"text","text":"hi"}],"isError":false}'
    assert json.loads(encode_result(text("no", is_error=True), BRIDGE))["isError"] is True


def test_an_image_keeps_its_data_and_type():
    """Source: seed (content is text or image with data and mimeType)."""
    result = Result(content=(Text("a"), Image("QUJD", "image/png")))
    assert json.loads(encode_result(result, PLAIN))["content"] == [
        {"type": "text", "text": "a"},
        {"type": "image", "data": "QUJD", "mimeType": "image/png"},
    ]


def test_structured_content_goes_only_where_the_dialect_carries_it_and_there_is_some():
    """Source: issue (structuredContent where the dialect carries it)."""
    result = text("x", structured={"exit": 0})
    assert json.loads(encode_result(result, BRIDGE))["structuredContent"] == {"exit": 0}
    assert "structuredContent" not in json.loads(encode_result(result, PLAIN))
    assert "structuredContent" not in json.loads(encode_result(text("x"), BRIDGE))
    assert json.loads(encode_result(text("x", structured={}), BRIDGE))["structuredContent"] == {}


def test_half_a_character_becomes_visible_instead_of_failing():
    """Source: try-out 08, ours."""
    result = Result(
        content=(Text("a\ud83db"), Image("QUJD", "image/png")),
        structured={"\udc00": ["\ud800", ("\udfff", 1, None)]},
    )
    got = json.loads(encode_result(result, BRIDGE))
    assert got["content"][0]["text"] == "a\\ud83db"
    assert got["structuredContent"] == {"\\udc00": ["\\ud800", ["\\udfff", 1, None]]}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_cannot_say_is_null(number):
    """Source: ours."""
    assert b'"structuredContent":{"x":null}' in encode_result(text("", structured={"x": number}), BRIDGE)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.text(st.characters(exclude_categories=())), st.dictionaries(st.text(), ANY, max_size=3))
def test_any_result_is_strict_json_in_utf_8(body, structured):
    """Source: ours."""

    def never(word: str) -> None:
        raise AssertionError(word)

    encoded = encode_result(text(body, structured=structured), BRIDGE)
    got = json.loads(encoded.decode("utf-8"), parse_constant=never)
    if body.isascii():
        assert got["content"][0]["text"] == body
