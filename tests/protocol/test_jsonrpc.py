"""One body to one message: whatever the bytes, a message or one of three refusals, and the id never changes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2mcp.errors import (
    Busy,
    Internal,
    InvalidParams,
    InvalidRequest,
    MethodNotAllowed,
    ParseError,
    ToolError,
    Unauthorized,
)
from a2mcp.protocol import bridge, halves, jsonrpc
from a2mcp.protocol.refusal import response_for

REFUSALS = (ParseError, InvalidRequest, InvalidParams)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
ids = st.one_of(st.integers(), st.text(max_size=50), st.none())
near_messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "2", 2, None]),
        "id": json_values,
        "method": st.text(max_size=20) | json_values,
        "params": json_values,
        "extra": json_values,
    },
)


def _outcome(body: bytes) -> jsonrpc.Message | Exception:
    try:
        return jsonrpc.decode(body)
    except REFUSALS as error:
        return error


def _strict(body: bytes) -> bool:
    """Whether this is JSON by a parser other than ours, in UTF-8 and without the constants that JSON lacks."""
    try:
        text = body.decode("utf-8")
        json.loads(text, parse_constant=halves._no_constant, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return not text.startswith("\ufeff")


@given(st.binary(max_size=200))
@example(b"")
@example(b"\xff")
@example(b"[" * 5000)
@example(b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"x"}')
@example(b'{"jsonrpc":"2.0","id":"\\ud83d","method":"x"}')
@example(b'{"id":1,"method":"\xed\xa0\x80"}')
def test_no_bytes_raise_anything_else(body: bytes) -> None:
    """Issue, bad input: property test over the JSON-RPC surface."""
    outcome = _outcome(body)

    if isinstance(outcome, jsonrpc.Message):
        assert _strict(body)


@given(near_messages, st.booleans())
def test_json_of_any_shape_is_a_message_or_an_invalid_request(document: dict[str, Any], ascii_only: bool) -> None:
    """Seed, "Order of processing" 5 and 6: what is JSON is never a parse error."""
    text = json.dumps(document, ensure_ascii=ascii_only)
    outcome = _outcome(text.encode("utf-8", "surrogatepass"))

    if isinstance(outcome, ParseError):
        assert "\\ud" in text.lower() or not text.isprintable() or any("\ud800" <= char <= "\udfff" for char in text)
    if isinstance(outcome, jsonrpc.Message):
        assert document["jsonrpc"] == "2.0"
        assert outcome.method == document["method"]
        assert json.loads(outcome.request_id) == document.get("id")
        assert json.loads(bytes(outcome.params) or b"null") == document.get("params")


@given(st.data(), st.binary(max_size=3), st.integers(0, 80))
def test_a_damaged_message_is_accepted_only_if_it_is_json(data: st.DataObject, noise: bytes, at: int) -> None:
    """Row J04, as a property: what is accepted is JSON to a stricter parser too, and its id is echoed as JSON."""
    message = {"jsonrpc": "2.0", "id": data.draw(ids), "method": "ping", "params": data.draw(json_values)}
    body = json.dumps(message).encode()
    cut = data.draw(st.integers(0, 2))
    body = body[:at] + noise + body[at + cut :]
    outcome = _outcome(body)

    if isinstance(outcome, jsonrpc.Message):
        assert _strict(body)
        json.loads(jsonrpc.result(outcome.request_id, b"{}"))
    elif isinstance(outcome, REFUSALS):
        json.loads(jsonrpc.error_of(outcome.request_id, outcome))


@given(ids)
def test_an_id_is_echoed_byte_for_byte(request_id: Any) -> None:
    """Row J02: integers of any size, strings in any spelling."""
    for ascii_only in (True, False):
        try:
            spelt = json.dumps(request_id, ensure_ascii=ascii_only).encode()
        except UnicodeEncodeError:
            continue
        outcome = _outcome(b'{"jsonrpc":"2.0","id": %b ,"method":"ping"}' % spelt)
        if isinstance(outcome, jsonrpc.Message):
            assert outcome.request_id == spelt
            assert jsonrpc.result(outcome.request_id, b"{}") == b'{"jsonrpc":"2.0","id":%b,"result":{}}' % spelt


@pytest.mark.parametrize("raw", [b"1.0", b"1e3", b"true", b"{}", b"[]", b"1" * 1025, b'"' + b"x" * 1023 + b'"'])
def test_an_odd_id_is_refused_and_not_echoed(raw: bytes) -> None:
    """Row J02 and try-out 17."""
    with pytest.raises(InvalidRequest) as caught:
        jsonrpc.decode(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % raw)

    assert caught.value.request_id == b"null"


def test_the_longest_id_and_method_are_taken() -> None:
    """Ours, the edges of what is echoed."""
    longest_id = b'"' + b"x" * (jsonrpc.LONGEST_ID - 2) + b'"'
    longest_method = "m" * jsonrpc.LONGEST_METHOD
    body = b'{"jsonrpc":"2.0","id":%b,"method":"%b"}'

    assert jsonrpc.decode(body % (longest_id, longest_method.encode())).request_id == longest_id
    with pytest.raises(InvalidRequest):
        jsonrpc.decode(body % (b"1", longest_method.encode() + b"m"))


@pytest.mark.parametrize(
    ("body", "request_id"),
    [
        (b'{"id":7,"method":"ping"}', b"7"), (b'{"id":"x","jsonrpc":"1"}', b'"x"'), (b'{"jsonrpc":"2.0","id":3,"method":5}', b"3"),
        (b'{"id":1.5,"method":"ping"}', b"null"), (b"[7]", b"null"), (b'{"method":"ping"}', b"null"),
    ],
)  # fmt: skip
def test_a_refused_shape_keeps_the_id_where_one_can_be_read(body: bytes, request_id: bytes) -> None:
    """Seed, "Table of errors": id or null."""
    with pytest.raises(InvalidRequest) as caught:
        jsonrpc.decode(body)

    assert caught.value.request_id == request_id


@pytest.mark.parametrize("half", ["\\ud83d", "\\udc00", "\\uDBFF", "\\ud83d\\ud83d", "\\udc00\\ud83d", "a\\ud83dx"])
def test_half_a_character_is_invalid_params_by_name(half: str) -> None:
    """Try-out 08 (a): well-formed by the grammar, so it is not called a parse error."""
    for body in (
        f'{{"{half}":1}}',
        f'["{half}"]',
        f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":"{half}"}}}}',
    ):
        with pytest.raises(InvalidParams, match="surrogate"):
            jsonrpc.decode(body.encode())


def test_whole_pairs_are_characters() -> None:
    """Try-out 08 (a), the good half."""
    message = jsonrpc.decode(b'{"jsonrpc":"2.0","id":"\\ud83d\\ude00","method":"\\ud83d\\ude00"}')

    assert (message.method, message.request_id) == ("\U0001f600", b'"\\ud83d\\ude00"')


@given(st.text(), st.integers(-40_000, 40_000))
def test_an_error_is_json_whatever_its_text(text: str, code: int) -> None:
    """Row H14: every error body is JSON."""
    text = text.encode("utf-8", "replace").decode()
    body = json.loads(jsonrpc.error(b"1", code, text))

    assert body == {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": text}}


# --- tools/call ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "name", "arguments"),
    [
        (b"", "", b""), (b"null", "", b""), (b"{}", "", b""), (b'{"name":"x"}', "x", b""), (b'{"arguments":[1]}', "", b"[1]"),
        (b'{"name":"x","arguments":{"a":1},"_meta":{}}', "x", b'{"a":1}'), (b'{"name":"a","name":"b"}', "b", b""),
    ],
)  # fmt: skip
def test_the_parameters_of_a_call(params: bytes, name: str, arguments: bytes) -> None:
    """Seed, "tools/call": a missing name counts as the empty one; arguments are passed on as they are."""
    read = bridge.call_params(msgspec.Raw(params))

    assert read is not None
    assert (read.name, bytes(read.arguments)) == (name, arguments)


@given(json_values)
def test_no_parameters_raise(params: Any) -> None:
    """Row J09."""
    read = bridge.call_params(msgspec.Raw(json.dumps(params).encode()))

    assert read is None or isinstance(read.name, str)


# --- refusals -----------------------------------------------------------------------------------------------------


def test_405_has_no_body_and_no_other_error_is_without() -> None:
    """Seed, "Table of errors"."""
    assert response_for(MethodNotAllowed("method not allowed")).body == b""
    assert json.loads(response_for(Unauthorized("unauthorized")).body)["error"] == {
        "code": -32000, "message": "unauthorized",
    }  # fmt: skip


def test_what_is_not_for_a_caller_is_an_internal_error_in_fixed_words() -> None:
    """Seed, "Table of errors": 500 with a fixed text."""
    for error in (Internal(), ToolError("/secret/path")):
        response = response_for(error, b"5")
        assert (response.status, response.body) == (
            500,
            b'{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"internal error"}}',
        )


def test_busy_says_when_to_try_again() -> None:
    """RFC 9110 §15.6.4."""
    response = response_for(Busy("full"), b"1")

    assert (response.status, response.headers) == (503, (("Retry-After", "1"),))


def test_the_id_known_to_the_exchange_goes_before_the_one_of_the_error() -> None:
    """Ours."""
    error = InvalidRequest("invalid request")
    error.request_id = b"1"

    assert b'"id":1,' in response_for(error).body
    assert b'"id":2,' in response_for(error, b"2").body


@pytest.mark.parametrize(
    ("params", "place"),
    [
        (rb'{"arguments":{"\ud83d":1}}', r"'params.arguments.\ud83d': \ud83d is half"),
        (rb'{"arguments":{"path":["x\udc00y"]}}', r"'params.arguments.path[0]': \udc00 is half"),
    ],
    ids=["name", "value"],
)
def test_half_a_character_is_named_where_it_stands_and_answered_under_its_id(params: bytes, place: str) -> None:
    """Try-out 08 (a): names the argument, in a name or a value, as it was spelled."""
    with pytest.raises(InvalidParams) as caught:
        jsonrpc.decode(b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":%b}' % params)

    assert place in caught.value.text
    assert caught.value.request_id == b"5"


def test_a_batch_is_refused_in_words_on_the_standard_dialect() -> None:
    """Try-out 17: arrays are refused with a clear error."""
    with pytest.raises(InvalidRequest, match="no batch"):
        jsonrpc.decode_any(b' [{"jsonrpc":"2.0","id":1,"method":"ping"}]')
