"""The parts that the standard dialect is made of, each by itself and with any input."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.audit.record import MAX_CLIENT
from a2mcp.errors import HeaderMismatch, InvalidParams
from a2mcp.protocol import eras, mirrors, pages
from a2mcp.protocol.caller import CLIENT_INFO, Caller
from a2mcp.protocol.dialects import Dialect
from a2mcp.protocol.interviews import target_of
from a2mcp.protocol.statetoken import VALID_S, StateTokens
from a2mcp.protocol.versions import LEGACY, MODERN, NEWEST_LEGACY
from a2mcp.protocol.versions.bridge import BRIDGE
from a2mcp.tools.result import Encoded

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class Clock:
    def __init__(self) -> None:
        self.time = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    def now(self) -> dt.datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


# --- dialects -------------------------------------------------------------------------------------------------------


def test_each_revision_can_do_what_it_brought() -> None:
    """Source: issue, section 1: one table says how they differ."""
    assert list(LEGACY) == ["2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
    assert [each.asks_by_stream for each in LEGACY.values()] == [False, False, False, True, True]
    assert ["audio" in each.blocks for each in LEGACY.values()] == [False, False, True, True, True]
    assert [each.structured for each in LEGACY.values()] == [False, False, False, True, True]
    assert not any(each.sessions or each.closing_cancels or each.cacheable for each in LEGACY.values())
    assert all(each.asks_by_retry and each.closing_cancels and each.cacheable for each in MODERN.values())
    assert (BRIDGE.sessions, BRIDGE.streams, BRIDGE.asks_by_stream) == (True, False, False)


@pytest.mark.parametrize("dialect", [*LEGACY.values(), *MODERN.values()], ids=lambda each: each.version)
@pytest.mark.parametrize("body", [b"{}", b'{"contents":[]}'])
def test_what_a_dialect_adds_leaves_an_object(dialect: Dialect, body: bytes) -> None:
    """Source: specification, "results": ``resultType`` on each modern one, hints where it may be kept."""
    plain = json.loads(dialect.written(Encoded(body, sealed=False)))
    sealed = json.loads(dialect.sealed(body))
    cached = json.loads(dialect.written(Encoded(b'{"contents":[]}', cacheable=True)))

    modern = dialect.version in MODERN
    assert plain == {name: value for name, value in sealed.items() if name != "resultType"}
    assert ("_meta" in plain) is modern
    assert sealed.get("resultType") == ("complete" if modern else None)
    assert ({"ttlMs", "cacheScope"} <= cached.keys()) is modern
    assert cached["contents"] == []


# --- pages ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 450))
def test_the_pages_of_a_list_are_the_list(length: int) -> None:
    """Source: specification, "pagination"."""
    items = list(range(length))
    seen: list[int] = []
    cursor = None
    while True:
        page = pages.page("items", items, cursor)
        seen += page["items"]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    assert seen == items


@given(JSON)
def test_no_other_value_is_a_cursor(cursor: Any) -> None:
    """Source: specification, "pagination": -32602."""
    if cursor is None:
        return
    with pytest.raises(InvalidParams):
        pages.page("items", list(range(300)), cursor)


@pytest.mark.parametrize(
    "change", [lambda c: c + "!", lambda c: " " + c, lambda c: c.rstrip("="), lambda c: c[:4] + "\n" + c[4:]]
)
def test_a_cursor_has_one_spelling(change: Any) -> None:
    """Source: ours; the decoder passes over what is no base64."""
    items = list(range(300))
    cursor = pages.page("items", items, None)["nextCursor"]
    changed = change(cursor)
    if changed != cursor:
        with pytest.raises(InvalidParams):
            pages.page("items", items, changed)


# --- the state that a caller carries --------------------------------------------------------------------------------


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3), st.none() | st.text(), st.binary(), st.text())
def test_a_state_comes_back_as_it_was_given(answers: Any, state: str | None, target: bytes, method: str) -> None:
    """Source: specification, ``requestState``."""
    try:
        expected = json.loads(msgspec.json.encode(answers))
        method.encode()
    except (OverflowError, UnicodeEncodeError, msgspec.MsgspecError):
        return
    tokens = StateTokens("secret", Clock())

    assert tokens.read(tokens.make(method, target, expected, state), method, target) == (expected, state)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_no_changed_byte_goes_unseen(position: int, change: int) -> None:
    """Source: specification, ``requestState``: integrity."""
    tokens = StateTokens("secret", Clock())
    raw = bytearray(base64.urlsafe_b64decode(tokens.make("tools/call", b"t", {"a": 1}, "s")))
    raw[position % len(raw)] ^= change

    with pytest.raises(InvalidParams):
        tokens.read(base64.urlsafe_b64encode(raw).decode(), "tools/call", b"t")


@given(st.text())
def test_no_text_is_a_state(text: str) -> None:
    """Source: specification, ``requestState``: attacker-controlled."""
    with pytest.raises(InvalidParams):
        StateTokens("secret", Clock()).read(text, "tools/call", b"t")


def test_a_state_is_bound_to_method_target_secret_and_time() -> None:
    """Source: issue, section 3."""
    clock = Clock()
    tokens = StateTokens("secret", clock)
    token = tokens.make("tools/call", b"t", {}, None)

    for method, target in (("prompts/get", b"t"), ("tools/call", b"u"), ("tools/call", b"")):
        with pytest.raises(InvalidParams):
            tokens.read(token, method, target)
    with pytest.raises(InvalidParams):
        StateTokens("other", clock).read(token, "tools/call", b"t")
    clock.time += dt.timedelta(seconds=VALID_S - 1)
    assert tokens.read(token, "tools/call", b"t") == ({}, None)
    clock.time += dt.timedelta(seconds=2)
    with pytest.raises(InvalidParams):
        tokens.read(token, "tools/call", b"t")


def test_the_target_of_a_state_is_the_arguments_in_any_spelling() -> None:
    """Source: ours; clients write the same arguments anew for each round."""
    same = {target_of("t", raw) for raw in (b'{"a":1,"b":"x"}', b'{ "b" : "\\u0078", "a":1 }')}
    assert len(same) == 1
    assert target_of("t", b"") == target_of("t", b"{}")
    others = {
        target_of(*each)
        for each in (("t", b'{"a":1}'), ("t", b'{"a":2}'), ("u", b'{"a":1}'), ("t", b"{"), ("t", b"[" * 9000))
    }
    assert len(others) == 5


# --- headers that repeat the body -----------------------------------------------------------------------------------


@given(st.text())
def test_any_text_can_be_sent_in_a_header(text: str) -> None:
    """Source: specification, "transports", encoding of header values."""
    try:
        written = base64.b64encode(text.encode()).decode()
    except UnicodeEncodeError:
        return
    assert eras.decoded(f"=?base64?{written}?=") == text


@given(st.text(st.characters(max_codepoint=255)))
def test_a_header_is_decoded_or_refused(text: str) -> None:
    """Source: error table, row 4; what is no ASCII was answered 500 once."""
    for value in (text, f"=?base64?{text}?="):
        with contextlib.suppress(HeaderMismatch):
            eras.decoded(value)


SCHEMA = {
    "type": "object",
    "properties": {
        "where": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "list": {"type": "array", "items": {"type": "string", "x-mcp-header": "Never"}},
        "odd": {"type": "object", "x-mcp-header": "Never"},
        "plain": True,
    },
}


def checked(arguments: Any, **headers: str) -> bool:
    sent = {f"MCP-PARAM-{name.upper()}": value for name, value in headers.items()}
    try:
        mirrors.check(SCHEMA, msgspec.Raw(json.dumps(arguments).encode()), sent.get)
    except HeaderMismatch:
        return False
    return True


def test_arguments_are_found_where_the_schema_has_them() -> None:
    """Source: specification, ``x-mcp-header``: scalars reached by ``properties`` alone."""
    assert checked({"where": {"zone": "a"}, "count": 3, "list": ["x"], "odd": {}}, zone="a", count="3")
    assert not checked({"where": {"zone": "a"}, "count": 3}, zone="b", count="3")
    assert checked({"where": "elsewhere"})
    assert not checked({"where": "elsewhere"}, zone="a")
    assert checked({"count": None})
    assert checked(["no object"])


@given(st.integers())
def test_integers_are_compared_exactly(number: int) -> None:
    """Source: specification: compared as numbers; a float would take its neighbour for it."""
    assert checked({"count": number}, count=str(number))
    assert not checked({"count": number}, count=str(number + 1))


@given(st.text(st.characters(max_codepoint=255)), JSON)
def test_no_header_and_no_argument_breaks_the_check(header: str, value: Any) -> None:
    """Source: ours."""
    checked({"count": value, "where": value}, count=header, zone=header)


# --- callers --------------------------------------------------------------------------------------------------------


@given(JSON, JSON, JSON)
def test_whatever_a_caller_says_of_itself_is_taken_or_refused(meta: Any, answers: Any, state: Any) -> None:
    """Source: ours; facts of a request come from anybody."""
    params = eras.Params(inputResponses=answers, requestState=state, meta=meta)
    for dialect in (*LEGACY.values(), *MODERN.values()):
        try:
            caller = eras.caller_of(params, dialect, None)
        except InvalidParams:
            continue
        assert isinstance(caller, Caller)
        assert isinstance(caller.answers, dict)
        caller.wants_log("info")


def test_a_name_of_a_client_is_as_short_as_the_log_has_it() -> None:
    """Source: ours; it is shown to the operator and kept with events, wherever it came from."""
    named = eras.Params(meta={CLIENT_INFO: {"name": "n" * 5000}})
    for header, shown in (("h" * 5000, "h"), (None, "n"), ("", "n")):
        assert eras.caller_of(named, NEWEST_LEGACY, header).client == shown * MAX_CLIENT
