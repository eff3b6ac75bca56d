"""The bridge's methods, each as the contract words it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from harness import running, until

import a2mcp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness import Daemon


@pytest.fixture(autouse=True)
def _alive_afterwards(shared_daemon: Daemon) -> Iterator[None]:
    yield
    shared_daemon.alive()


@pytest.mark.parametrize(
    "params",
    [{"protocolVersion": "2025-11-25"}, {"protocolVersion": "1999-01-01"}, {}, None, {"protocolVersion": 5}, [], "x", 7,
     {"capabilities": {"roots": {}}, "clientInfo": {"name": "x", "version": "1"}, "extra": [1]}],
)  # fmt: skip
def test_initialize_says_one_version_whatever_is_asked(shared_daemon: Daemon, params: Any) -> None:
    """Seed, "initialize": always 2025-11-25, the rest of params is ignored, the session is in the header."""
    answer = shared_daemon.client().ask("initialize", params)

    assert answer.json == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "a2mcp", "version": a2mcp.__version__},
        },
    }
    assert answer.headers["mcp-session-id"]


def test_ping_is_answered_with_an_empty_result(shared_daemon: Daemon) -> None:
    """Seed, "ping"."""
    answer = shared_daemon.session().post({"jsonrpc": "2.0", "id": "p", "method": "ping"})

    assert (answer.status, answer.json) == (200, {"jsonrpc": "2.0", "id": "p", "result": {}})


def test_ping_is_answered_while_calls_hang(tmp_path: Path) -> None:
    """Seed, "ping" and "tools/call" exit 3: a call that waits for approval has no answer, and ping goes on."""
    with running(tmp_path / "home", settings={"approval": {"mode": "always-ask"}}) as daemon:
        client = daemon.session()
        hanging = [daemon.client() for _ in range(8)]
        for other in hanging:
            other.session = client.session
            other._connection.request(
                "POST", "/", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}',
                {"Authorization": f"Bearer {daemon.token}", "mcp-session-id": str(client.session)},
            )  # fmt: skip
        until(lambda: len(daemon.audit()) == 8, what="eight starts")

        assert [client.ask("ping").result for _ in range(50)] == [{}] * 50
        assert [record["phase"] for record in daemon.audit()] == ["start"] * 8, "start without done"


@pytest.mark.parametrize("params", [None, {}, {"cursor": "abc"}, {"cursor": 5}, [], "x"])
def test_the_list_is_one_page_and_the_cursor_is_ignored(shared_daemon: Daemon, params: Any) -> None:
    """Seed, "tools/list": name, description, inputSchema in full on one page without nextCursor."""
    result = shared_daemon.session().ask("tools/list", params).result

    assert set(result) == {"tools"}
    names = [tool["name"] for tool in result["tools"]]
    assert len(names) == len(set(names)) >= 7
    for tool in result["tools"]:
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"


def test_whatever_is_listed_can_be_called(shared_daemon: Daemon) -> None:
    """Seed, "tools/list": list, exposure and running read one registry."""
    client = shared_daemon.session()

    for tool in client.ask("tools/list").result["tools"]:
        answer = client.call(tool["name"], surely_no_argument=1)
        assert answer.result["isError"] is True
        assert "not exposed" not in answer.text


def test_a_call_that_succeeds(shared_daemon: Daemon, tmp_path: Path) -> None:
    """Seed, "tools/call" exit 1: 200 with content and isError false."""
    (tmp_path / "x.txt").write_text("hello\n")

    result = shared_daemon.session().call("read", path=str(tmp_path / "x.txt")).result

    assert result["isError"] is False
    assert [block["type"] for block in result["content"]] == ["text"]
    assert set(result["content"][0]) == {"type", "text"}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"path": "/no/such/file"}),
        ("read", {}),
        ("read", {"path": 5}),
        ("read", []),
        ("bash", "x"),
        ("read", None),
    ],
)
def test_a_tool_that_refuses_is_a_result(shared_daemon: Daemon, tool: str, arguments: Any) -> None:
    """Seed, "tools/call" exit 1: what a tool throws goes into isError and never becomes an HTTP error."""
    answer = shared_daemon.session().ask("tools/call", {"name": tool, "arguments": arguments})

    assert answer.status == 200
    assert answer.result["isError"] is True
    assert answer.text


def test_an_image_comes_as_base64_with_its_type_and_nothing_else(shared_daemon: Daemon, tmp_path: Path) -> None:
    """Seed, "tools/call" exit 1: content is text or image {data, mimeType}."""
    from PIL import Image

    Image.new("RGB", (4, 3), "red").save(tmp_path / "x.png")

    content = shared_daemon.session().call("read", path=str(tmp_path / "x.png")).result["content"]

    image = next(block for block in content if block["type"] == "image")
    assert set(image) == {"type", "data", "mimeType"}
    assert image["mimeType"].startswith("image/")
    assert base64.b64decode(image["data"], validate=True)
    assert all(block["type"] in ("text", "image") for block in content)


@pytest.mark.parametrize(
    "params", [{"name": "no-such"}, {"name": "xd://bash"}, {"name": "BASH"}, {"name": "bash "}, {"name": ""}, {}, None,
               {"arguments": {}}, {"name": "mcp__x__y", "arguments": 5}],
)  # fmt: skip
def test_a_name_that_is_not_there_is_not_exposed(shared_daemon: Daemon, params: Any) -> None:
    """Seed, "tools/call" exit 2: 200, isError, "not exposed", one text for all; a missing name counts as empty."""
    answer = shared_daemon.session().ask("tools/call", params)

    name = (params or {}).get("name", "")
    assert answer.status == 200
    assert answer.result["isError"] is True
    assert answer.text == f"Tool '{name}' is not exposed. Call tools/list for the names."


def test_every_call_leaves_a_pair_also_when_it_is_refused(shared_daemon: Daemon) -> None:
    """Seed, "tools/call": each call, refused ones too, writes two records; their id is ours, not the caller's."""
    client = shared_daemon.session()
    client.post({"jsonrpc": "2.0", "id": "mine", "method": "tools/call", "params": {"name": "no-such"}})
    client.call("read", path=5)

    mine = [record for record in shared_daemon.audit() if record["sid"] == client.session]

    assert [(r["phase"], r["tool"], r.get("isError")) for r in mine] == [
        ("start", "no-such", None), ("done", "no-such", True), ("start", "read", None), ("done", "read", True),
    ]  # fmt: skip
    assert mine[0]["id"] == mine[1]["id"] != mine[2]["id"] == mine[3]["id"]
    assert "mine" not in {record["id"] for record in mine}


def test_lists_pings_and_session_errors_leave_no_record(shared_daemon: Daemon) -> None:
    """Seed, "Authentication" (鉴权): session errors and tools/list are seen in their response only."""
    client = shared_daemon.session()
    before = shared_daemon.audit()

    client.ask("tools/list")
    client.ask("ping")
    client.ask("nothing")
    client.ask("ping", mcp_session_id="unknown")
    client.post(b"{")

    assert shared_daemon.audit() == before


@pytest.mark.parametrize(
    "method", ["notifications/initialized", "notifications/cancelled", "notifications/", "notifications/x/y"]
)
@pytest.mark.parametrize("with_id", [False, True])
def test_notifications_get_202_with_an_empty_body(shared_daemon: Daemon, method: str, with_id: bool) -> None:
    """Seed, "notifications/*": by prefix alone, 202, empty."""
    client = shared_daemon.session()
    message = {"jsonrpc": "2.0", "method": method} | ({"id": 1} if with_id else {})

    answer = client.post(message)

    assert (answer.status, answer.body) == (202, b"")
    assert client.post(message, mcp_session_id=None).status == 400
    assert client.post(message, mcp_session_id="unknown").status == 404


@pytest.mark.parametrize(
    "method", ["nothing", "", "notifications", "Ping", "tools/lists", "resources/list", "é", "x" * 1024]
)
def test_an_unknown_method_is_an_error_in_a_200(shared_daemon: Daemon, method: str) -> None:
    """Seed, "Unknown method" (未知方法): HTTP 200 and -32601, not 404."""
    answer = shared_daemon.session().ask(method)

    assert (answer.status, answer.error) == (200, {"code": -32601, "message": "method not found"})


@pytest.mark.parametrize(
    ("method", "outcome"),
    [("ping", "result"), ("tools/list", "result"), ("tools/call", "result"), ("nothing", "error")],
)
def test_a_message_without_id_is_answered_with_id_null(shared_daemon: Daemon, method: str, outcome: str) -> None:
    """Seed, "Messages without id" (无 id 消息): only notifications/ counts as one; row J11."""
    answer = shared_daemon.session().post({"jsonrpc": "2.0", "method": method})

    assert answer.status == 200
    assert answer.json["id"] is None
    assert outcome in answer.json


def test_initialize_without_id_opens_a_session_all_the_same(shared_daemon: Daemon) -> None:
    """Seed, "Messages without id" (无 id 消息)."""
    answer = shared_daemon.client().post({"jsonrpc": "2.0", "method": "initialize"})

    assert (answer.status, answer.json["id"]) == (200, None)
    assert answer.headers["mcp-session-id"]


@pytest.mark.parametrize(
    "body",
    [b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b'"x"', b"5", b"null", b"true",
     b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b'{"id":1,"method":"ping"}', b'{"jsonrpc":2.0,"id":1,"method":"ping"}',
     b'{"jsonrpc":"2.0","id":1,"method":5}', b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"2.0","id":1,"result":{}}'],
)  # fmt: skip
def test_the_wrong_shape_is_an_invalid_request(shared_daemon: Daemon, body: bytes) -> None:
    """Seed, "Table of errors" (错误码总表): 400 -32600 for batch, jsonrpc, method and non-objects."""
    answer = shared_daemon.session().post(body)

    assert (answer.status, answer.error) == (400, {"code": -32600, "message": "invalid request"})


@pytest.mark.parametrize("body", [b"", b" ", b"{", b"not json", b"{}{}", b"\xff\xfe", b'{"a":}', b"{'a':1}"])
def test_what_is_no_json_is_a_parse_error(shared_daemon: Daemon, body: bytes) -> None:
    """Seed, "Table of errors" (错误码总表): 400 -32700."""
    answer = shared_daemon.session().post(body)

    assert answer.status == 400
    assert answer.json == {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "parse error"}}


def test_errors_carry_the_id_where_one_could_be_read(shared_daemon: Daemon) -> None:
    """Seed, "Table of errors" (错误码总表): every error body has jsonrpc, id or null, and error {code, message}."""
    client = shared_daemon.session()

    answers = {
        "shape": client.post({"id": "me", "method": "ping"}),
        "no session": client.post({"jsonrpc": "2.0", "id": "me", "method": "ping"}, mcp_session_id=None),
        "dead session": client.post({"jsonrpc": "2.0", "id": "me", "method": "ping"}, mcp_session_id="x"),
        "method": client.post({"jsonrpc": "2.0", "id": "me", "method": "nothing"}),
    }

    for answer in answers.values():
        assert set(answer.json) == {"jsonrpc", "id", "error"}
        assert set(answer.error) == {"code", "message"}
        assert answer.json["id"] == "me"


def test_the_sequence_of_a_client(shared_daemon: Daemon) -> None:
    """Seed, "Client sequence" (客户端接入时序): initialize, initialized, list and call, DELETE."""
    client = shared_daemon.client()

    opened = client.ask("initialize", {"protocolVersion": "2025-11-25"})
    client.session = opened.headers["mcp-session-id"]
    seen = [
        client.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status,
        client.ask("tools/list").status,
        client.call("bash", command="true").status,
        client.send("DELETE").status,
        client.ask("ping").status,
    ]

    assert seen == [202, 200, 200, 204, 404]
