"""Which era a request to ``/mcp`` is in, and what each wrong one is answered with: status, code, data."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from standard_client import BOTH_FORMS, LEGACY, META, MODERN, Standard, legacy, modern

if TYPE_CHECKING:
    from harness import Answer, Daemon

VERSIONS = ("2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


def refused(answer: Answer) -> tuple[int, int]:
    return answer.status, answer.error["code"]


def shake(mcp: Standard, version: Any, **headers: str | None) -> Answer:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return mcp.legacy("initialize", params, dict(headers))


# --- legacy ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_a_handshake_is_answered_in_the_version_it_asks_for(mcp: Standard, version: str) -> None:
    """Source: issue, section 2."""
    assert shake(mcp, version).result["protocolVersion"] == version


@pytest.mark.parametrize("version", ["2099-01-01", MODERN, "", None, 7, ["2025-11-25"]])
def test_a_handshake_that_asks_for_anything_else_gets_the_newest_legacy_version(mcp: Standard, version: Any) -> None:
    """Source: issue, section 2; specification, "lifecycle"."""
    answer = shake(mcp, version)

    assert answer.result["protocolVersion"] == LEGACY
    assert answer.result["serverInfo"]["name"] == "a2mcp"
    assert answer.result["instructions"]
    assert {"tools", "resources", "prompts", "completions", "logging"} <= answer.result["capabilities"].keys()


def test_no_session_is_issued_required_or_looked_at(mcp: Standard) -> None:
    """Source: issue, section 2."""
    opened = shake(mcp, LEGACY, **{"Mcp-Session-Id": "gone"})

    assert "mcp-session-id" not in opened.headers
    for headers in ({}, {"Mcp-Session-Id": "no such session"}):
        assert mcp.legacy("tools/list", headers=headers).result["tools"]
        assert mcp.modern("tools/list", headers=headers).result["tools"]


@pytest.mark.parametrize("version", [*VERSIONS, None])
def test_the_version_header_is_optional_and_each_legacy_version_is_taken(mcp: Standard, version: str | None) -> None:
    """Source: specification, "transports"; a client that never sends it."""
    assert mcp.legacy("ping", headers={"MCP-Protocol-Version": version}).result == {}


def test_a_legacy_request_under_a_version_that_nobody_speaks_is_400(mcp: Standard) -> None:
    """Source: specification, "transports"; routing, rules 2, 4 and 5."""
    wrong = {"MCP-Protocol-Version": "2099-01-01"}

    assert refused(mcp.legacy("ping", headers=wrong)) == (400, -32602)
    assert refused(shake(mcp, LEGACY, **wrong)) == (400, -32022)
    assert refused(shake(mcp, LEGACY, **{"MCP-Protocol-Version": MODERN})) == (400, -32022)
    assert mcp.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, wrong).status == 400


def test_mcp_method_on_a_legacy_message_does_not_make_it_modern(mcp: Standard) -> None:
    """Source: a bridge that puts it on every message."""
    assert mcp.legacy("ping", headers={"Mcp-Method": "ping", "Mcp-Name": "x"}).result == {}


def test_an_error_of_a_legacy_method_travels_with_status_200(mcp: Standard) -> None:
    """Source: specification, "transports"."""
    unknown_tool = mcp.legacy("tools/call", {"name": "no-such-tool"})
    unknown_uri = mcp.legacy("resources/read", {"uri": "test://nowhere"})

    assert refused(unknown_tool) == (200, -32602)
    assert refused(unknown_uri) == (200, -32002)
    assert unknown_uri.error["data"] == {"uri": "test://nowhere"}
    assert refused(mcp.legacy("no/such/method")) == (200, -32601)
    assert refused(mcp.legacy("server/discover")) == (200, -32601)


def test_results_of_legacy_versions_have_nothing_of_the_modern_one(mcp: Standard) -> None:
    """Source: specification, "caching": not part of legacy results."""
    for method, params in (("tools/list", None), ("resources/read", {"uri": "test://static-text"})):
        result = mcp.legacy(method, params).result
        assert not {"resultType", "ttlMs", "cacheScope", "_meta"} & result.keys()


def test_a_notification_is_202_and_one_with_an_id_is_answered(mcp: Standard) -> None:
    """Source: DSH seed, "Methods"."""
    for name in ("initialized", "cancelled", "progress", "roots/list_changed"):
        method = f"notifications/{name}"
        silent = mcp.send({"jsonrpc": "2.0", "method": method})
        assert (silent.status, silent.body) == (202, b"")
        assert mcp.legacy(method).result == {}
    assert mcp.send({"jsonrpc": "2.0", "method": "notifications/no-such"}).status == 202


def test_a_posted_response_that_nobody_waits_for_is_202_on_legacy_and_400_on_modern(mcp: Standard) -> None:
    """Source: routing, rule 5."""
    response = {"jsonrpc": "2.0", "id": "never-asked", "result": {}}

    assert mcp.send(response).status == 202
    assert mcp.send({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}).status == 202
    assert refused(mcp.send(response, {"MCP-Protocol-Version": MODERN})) == (400, -32600)


# --- modern ---------------------------------------------------------------------------------------------------------


def test_discover_says_what_there_is(mcp: Standard) -> None:
    """Source: specification, "server/discover"."""
    result = mcp.modern("server/discover").result

    assert result["supportedVersions"] == [MODERN]
    assert result["resultType"] == "complete"
    assert result["_meta"][META + "serverInfo"]["name"] == "a2mcp"
    assert result["capabilities"]["tools"] == {"listChanged": True}
    assert result["instructions"]
    assert "protocolVersion" not in result


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities", "_meta", "params"])
def test_a_modern_request_without_what_each_must_say_is_400_invalid_params(mcp: Standard, missing: str) -> None:
    """Source: error table, row 3; routing, rule 4."""
    message, headers = modern("tools/list")
    if missing == "params":
        del message["params"]
    elif missing == "_meta":
        del message["params"]["_meta"]
    else:
        del message["params"]["_meta"][META + missing]
    answer = mcp.send(message, headers)

    assert refused(answer) == (400, -32602)
    assert answer.json["id"] == 1
    assert (missing if missing.endswith("s") and missing != "params" else "protocolVersion") in answer.error["message"]


@pytest.mark.parametrize(
    ("key", "value"), [("protocolVersion", 7), ("clientCapabilities", []), ("clientCapabilities", None)]
)
def test_what_each_modern_request_must_say_has_its_type(mcp: Standard, key: str, value: Any) -> None:
    """Source: ours."""
    message, headers = modern("tools/list")
    message["params"]["_meta"][META + key] = value

    assert refused(mcp.send(message, headers)) == (400, -32602)


@pytest.mark.parametrize(
    "headers",
    [
        {"MCP-Protocol-Version": None},
        {"MCP-Protocol-Version": LEGACY},
        {"Mcp-Method": None},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Method": "TOOLS/CALL"},
        {"Mcp-Name": None},
        {"Mcp-Name": "other"},
        {"Mcp-Name": "=?base64?not base64!?="},
        {"Mcp-Name": "=?base64?ZWNobw?="},
        {"Mcp-Name": "=?base64?/w==?="},
        {"Mcp-Name": "=?base64?\xe9?="},
        {"Mcp-Name": "echo, echo"},
    ],
)
def test_a_header_that_does_not_repeat_the_body_is_a_mismatch(mcp: Standard, headers: dict[str, str | None]) -> None:
    """Source: error table, row 4; the one with a byte that is no ASCII was answered 500 once."""
    answer = mcp.modern("tools/call", {"name": "echo", "arguments": {"text": "x"}}, headers)

    assert refused(answer) == (400, -32020)
    assert answer.json["id"] == 1


@pytest.mark.parametrize("name", ["  echo\t", "=?base64?" + base64.b64encode(b"echo").decode() + "?="])
def test_a_header_repeats_the_body_also_encoded_or_padded(mcp: Standard, name: str) -> None:
    """Source: specification, "transports", encoding of header values."""
    answer = mcp.modern("tools/call", {"name": "echo", "arguments": {"text": "x"}}, {"Mcp-Name": name})

    assert answer.text == "x"


def test_a_version_that_is_not_served_is_400_with_what_is(mcp: Standard) -> None:
    """Source: error table, row 5."""
    answer = mcp.modern("tools/list", version="2031-01-01")

    assert refused(answer) == (400, -32022)
    assert answer.error["data"] == {"supported": [MODERN], "requested": "2031-01-01"}


@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such", "TOOLS/LIST"],
)
def test_a_method_that_the_modern_version_does_not_have_is_404(mcp: Standard, method: str) -> None:
    """Source: error table, row 7."""
    answer = mcp.modern(method, request_id="seven")

    assert refused(answer) == (404, -32601)
    assert answer.json["id"] == "seven"


def test_other_invalid_params_are_400_on_modern(mcp: Standard) -> None:
    """Source: error table, row 8."""
    assert refused(mcp.call("no-such-tool")) == (400, -32602)
    answer = mcp.modern("resources/read", {"uri": "test://nowhere"})
    assert refused(answer) == (400, -32602)
    assert answer.error["data"] == {"uri": "test://nowhere"}
    assert refused(mcp.modern("tools/list", {"cursor": "nonsense"})) == (400, -32602)


def test_a_failure_of_a_tool_is_a_result(mcp: Standard) -> None:
    """Source: error table, row 10; specification, "tools"."""
    assert mcp.call("test_error_handling").result["isError"] is True
    bad = mcp.call("test_custom_header", region=7)
    assert (bad.status, bad.error["code"]) == (400, -32020)
    wrong = mcp.call("echo", text=7)
    assert wrong.result["isError"] is True
    assert "text" in wrong.text


def test_the_order_of_the_checks_is_the_one_of_the_specification(mcp: Standard) -> None:
    """Source: modern ladder: ``_meta``, headers, version, Mcp-Param, method."""
    message, headers = modern("no/such", version="2031-01-01")
    del message["params"]["_meta"][META + "clientCapabilities"]
    assert refused(mcp.send(message, headers | {"Mcp-Method": "other"})) == (400, -32602)
    assert refused(mcp.modern("no/such", None, {"Mcp-Method": "other"}, version="2031-01-01")) == (400, -32020)
    assert refused(mcp.modern("no/such", version="2031-01-01")) == (400, -32022)
    assert refused(mcp.modern("no/such")) == (404, -32601)


@pytest.mark.parametrize("version", [None, MODERN, LEGACY])
def test_get_and_delete_are_405_and_say_what_is_allowed(mcp: Standard, version: str | None) -> None:
    """Source: error table, row 12; routing, rule 1."""
    for method in ("GET", "DELETE", "PUT"):
        answer = mcp.send(None, {"MCP-Protocol-Version": version, "Accept": "text/event-stream"}, method=method)
        assert answer.status == 405
        assert "POST" in answer.headers["allow"]


@pytest.mark.parametrize(
    ("headers", "good"),
    [
        ({"Mcp-Param-Region": "north"}, True),
        ({"Mcp-Param-Region": "=?base64?" + base64.b64encode(b"north").decode() + "?="}, True),
        ({"Mcp-Param-Region": " north "}, True),
        ({}, False),
        ({"Mcp-Param-Region": "south"}, False),
        ({"Mcp-Param-Region": "bm9ydGg="}, False),
        ({"Mcp-Param-Region": "=?base64?bm9ydGg?="}, False),
        ({"Mcp-Param-Region": "north", "Mcp-Param-Verbose": "true"}, False),
    ],
)
def test_an_argument_that_a_schema_mirrors_is_repeated_by_a_header(
    mcp: Standard, headers: dict[str, str | None], good: bool
) -> None:
    """Source: specification, ``x-mcp-header``."""
    answer = mcp.modern("tools/call", {"name": "test_custom_header", "arguments": {"region": "north"}}, headers)

    assert answer.status == (200 if good else 400)
    if not good:
        assert answer.error["code"] == -32020


@pytest.mark.parametrize(
    ("arguments", "headers", "good"),
    [
        ({"limit": 42}, {"Mcp-Param-Limit": "42.0"}, True),
        ({"limit": 9007199254740993}, {"Mcp-Param-Limit": "9007199254740993"}, True),
        ({"limit": 9007199254740993}, {"Mcp-Param-Limit": "9007199254740992"}, False),
        ({"limit": 42}, {"Mcp-Param-Limit": "many"}, False),
        ({"verbose": True}, {"Mcp-Param-Verbose": "true"}, True),
        ({"verbose": True}, {"Mcp-Param-Verbose": "1"}, False),
        ({"verbose": None}, {}, True),
    ],
)
def test_mirrored_numbers_and_booleans_are_compared_as_what_they_are(
    mcp: Standard, arguments: dict[str, Any], headers: dict[str, str | None], good: bool
) -> None:
    """Source: specification, ``x-mcp-header``; the large one is no float."""
    params = {"name": "test_custom_header", "arguments": {"region": "x"} | arguments}
    answer = mcp.modern("tools/call", params, {"Mcp-Param-Region": "x"} | headers)

    assert ((answer.status, answer.json.get("error", {}).get("code")) == (400, -32020)) is not good


# --- manners: both eras ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("application/json;q=0.9, text/event-stream", "application/json"),
        ("text/event-stream, application/json", "application/json"),
        ("APPLICATION/JSON", "application/json"),
        ("text/html", "application/json"),
    ],
)
def test_every_accept_is_served_in_a_form_it_allows(
    fixture_daemon: Daemon, path: str, accept: str | None, form: str
) -> None:
    """Source: try-out 17; issue, section 2."""
    client = Standard(fixture_daemon, path=path)
    for answer in (
        client.legacy("tools/list", headers={"Accept": accept}),
        client.modern("tools/list", headers={"Accept": accept}),
        client.modern("tools/call", {"name": "test_simple_text"}, {"Accept": accept}),
    ):
        assert answer.status == 200
        assert answer.headers["content-type"] == form
        assert answer.result
    client.close()


def test_an_error_with_a_status_keeps_it_whatever_the_client_accepts(mcp: Standard) -> None:
    """Source: error table; a stream would have said 200."""
    only = {"Accept": "text/event-stream"}

    assert refused(mcp.modern("no/such", headers=only)) == (404, -32601)
    assert refused(mcp.modern("tools/call", {"name": "no-such-tool"}, only)) == (400, -32602)
    assert refused(mcp.legacy("no/such", headers=only)) == (200, -32601)


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=utf-8", "application/json;charset=UTF-8", None, "text/plain"]
)
def test_the_content_type_is_read_leniently(mcp: Standard, content_type: str | None) -> None:
    """Source: try-out 17."""
    assert mcp.legacy("ping", headers={"Content-Type": content_type}).result == {}


@pytest.mark.parametrize("request_id", [7, "7", "a b", "", 0, -1, 12345678901234567890123, "é\u2028"])
def test_an_id_comes_back_as_it_came(mcp: Standard, request_id: Any) -> None:
    """Source: try-out 17."""
    for accept in (BOTH_FORMS, "text/event-stream"):
        assert mcp.legacy("ping", request_id=request_id, headers={"Accept": accept}).json["id"] == request_id
        assert mcp.modern("tools/list", request_id=request_id, headers={"Accept": accept}).json["id"] == request_id


@pytest.mark.parametrize("request_id", [None, 1.5, True, [], {}])
def test_an_id_that_is_no_string_or_integer_is_an_invalid_request(mcp: Standard, request_id: Any) -> None:
    """Source: try-out 17; never 202."""
    assert refused(mcp.legacy("ping", request_id=request_id)) == (400, -32600)
    assert refused(mcp.modern("tools/list", request_id=request_id)) == (400, -32600)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b"{}", -32600),
        (b'"x"', -32600),
        (b"7", -32600),
        (b"null", -32600),
        (b"", -32700),
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} x', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":NaN}', -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":7}', -32602),
    ],
)
def test_a_body_that_is_not_one_message_is_400_and_named(mcp: Standard, body: bytes, code: int) -> None:
    """Source: error table, rows 1 and 2; try-out 17."""
    answer = mcp.send(body)

    assert refused(answer) == (400, code)
    assert answer.headers["content-type"] == "application/json"


ODD = ("1e999", "9" * 6000, r'"\ud83d"', "[" * 5000 + "]" * 5000, '{"a":{"a":null}}', "null", "true", "-0.0")


@pytest.mark.parametrize("member", ["arguments", "_meta", "uri", "level", "cursor", "ref", "more", "requestId"])
@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_no_value_in_any_member_is_answered_500(mcp: Standard, member: str, value: str) -> None:
    """Source: issue, "Bad input"; try-out 08. A number too large for a float was, in ``params`` of five methods."""
    methods = (
        "initialize", "ping", "tools/list", "tools/call", "resources/read", "resources/subscribe", "prompts/get",
        "completion/complete", "logging/setLevel", "notifications/cancelled",
    )  # fmt: skip
    for method in methods:
        name = '"name":"test_simple_prompt",' if member != "name" else ""
        body = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{name}"{member}":{value}}}}}'
        answer = mcp.send(body.encode())
        assert answer.status in (200, 400), (method, answer.body)
        assert "internal" not in answer.body.decode(), (method, answer.body)
    silent = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"{member}":{value}}}}}'
    assert mcp.send(silent.encode()).status in (202, 400)


def test_repeated_members_count_as_the_last_one(mcp: Standard) -> None:
    """Source: try-out 08, ours."""
    assert mcp.send(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"no","method":"ping"}').json == {
        "jsonrpc": "2.0", "id": 2, "result": {}
    }  # fmt: skip


# --- pages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list", "prompts/list"])
@pytest.mark.parametrize(
    "cursor", ["nonsense", "", 7, [], "YTJtY3A6MA==", "YTJtY3A6OTk5OTk=", "YTJtY3A6MQ==!", "\u00e9"]
)
def test_a_cursor_that_is_not_ours_is_invalid_params(mcp: Standard, method: str, cursor: Any) -> None:
    """Source: specification, "pagination"."""
    answer = mcp.legacy(method, {"cursor": cursor})

    assert answer.error["code"] == -32602


@pytest.mark.parametrize("ask", [legacy, modern])
def test_lists_are_the_same_each_time_and_in_one_order(mcp: Standard, ask: Any) -> None:
    """Source: specification, "tools": deterministic order."""
    first, second = (json.dumps(mcp.send(*ask("tools/list")).result) for _ in range(2))

    assert first == second
