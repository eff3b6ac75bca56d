"""The bridge's transport table: which paths and methods are taken, and what comes back on every response."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Daemon


@pytest.fixture(autouse=True)
def _alive_afterwards(shared_daemon: Daemon) -> Iterator[None]:
    yield
    shared_daemon.alive()


@pytest.mark.parametrize(
    "path", ["/", "/mcp2", "/a/b?c=d&e", "/%2e%2e/x", "//double", "/xferry", "/host-llm/x", "/%78fer", "/?"]
)
def test_post_and_delete_are_taken_on_any_path_that_is_not_reserved(shared_daemon: Daemon, path: str) -> None:
    """Seed, "Transport" (传输), endpoint: the bridge does not look at the path; only two are reserved."""
    client = shared_daemon.client()

    opened = client.ask("initialize")
    client.session = opened.headers["mcp-session-id"]
    pinged = client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, path)
    ended = client.send("DELETE", path)

    assert pinged.json == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (ended.status, ended.body) == (204, b"")
    assert client.ask("ping").status == 404


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "FOO"])
def test_other_methods_get_405_with_an_empty_body(shared_daemon: Daemon, method: str) -> None:
    """Seed, "Transport" (传输), GET and other methods: 405 with an empty body; no SSE endpoint."""
    client = shared_daemon.session()

    answer = client.send(method)

    assert (answer.status, answer.body) == (405, b"")
    assert shared_daemon.client().ask("initialize").status == 200


def test_a_batch_is_refused(shared_daemon: Daemon) -> None:
    """Seed, "Transport" (传输), POST: one message, a top-level array gets 400."""
    client = shared_daemon.session()

    answer = client.post([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])

    assert answer.status == 400
    assert answer.json == {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "invalid request"}}


def test_every_response_is_json_and_only_initialize_carries_a_session(shared_daemon: Daemon) -> None:
    """Seed, "Transport" (传输), response headers: application/json always, mcp-session-id on initialize only."""
    client = shared_daemon.client()
    opened = client.ask("initialize", {})
    client.session = opened.headers["mcp-session-id"]

    others = [
        client.ask("ping", Accept="text/event-stream"),
        client.ask("tools/list"),
        client.call("read", path="/nowhere"),
        client.call("no-such"),
        client.ask("nothing"),
        client.post(b"{"),
        client.ask("ping", mcp_session_id="unknown"),
        client.ask("ping", mcp_session_id=None),
        client.ask("ping", Authorization=None),
        client.ask("ping", Origin="http://evil.example"),
    ]

    for answer in (opened, *others):
        assert answer.headers["content-type"] == "application/json"
        assert answer.json["jsonrpc"] == "2.0"
    assert all("mcp-session-id" not in answer.headers for answer in others)


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "GET", "DELETE"])
@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://evil.example", "null"])
def test_no_response_ever_carries_a_cors_header(shared_daemon: Daemon, method: str, origin: str) -> None:
    """Seed, "Transport" (传输), CORS: not sent. Also: no server name, no sniffing, no challenge."""
    client = shared_daemon.client()

    answer = client.send(
        method, body=b"{}", Origin=origin, Access_Control_Request_Method="POST", Access_Control_Request_Headers="x"
    )

    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert {"server", "www-authenticate", "via"}.isdisjoint(answer.headers)
    assert not answer.body or answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/xfer", "/xfer/", "/xfer/a/b?json", "http://127.0.0.1/xfer/a"])
def test_the_reserved_paths_serve_nothing_yet_and_say_so_after_the_token(shared_daemon: Daemon, path: str) -> None:
    """Seed, "Order of processing" (请求处理顺序) 2-4: the two faces share one token."""
    client = shared_daemon.session()

    with_token = client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize"}, path)
    without = client.post(b"{}", path, Authorization=None)

    assert (with_token.status, with_token.error["code"]) == (404, -32000)
    assert "mcp-session-id" not in with_token.headers
    assert without.status == 401


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PROPFIND", "MKCOL", "MOVE"])
def test_any_method_passes_on_the_file_route(shared_daemon: Daemon, method: str) -> None:
    """Seed, "Order of processing" (请求处理顺序) 1: methods of the file route are not looked at."""
    client = shared_daemon.session()

    assert client.send(method, "/xfer/a").status == 404
    assert client.send(method, "/xfer/a", Authorization=None).status == 401
    assert client.ask("ping").result == {}


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_the_inference_switch_takes_post_only_and_delete_there_ends_no_session(
    shared_daemon: Daemon, method: str
) -> None:
    """Seed, "Switching the host's inference" (宿主推理切换): /host-llm takes POST; DELETE does not end a session."""
    client = shared_daemon.session()

    answer = client.send(method, "/host-llm", Authorization=None)

    assert (answer.status, answer.body) == (405, b"")
    assert client.ask("ping").result == {}
