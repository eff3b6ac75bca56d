"""Try-outs 16, 17, 18 and 22: small inputs from real reports, and what must hold."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from harness import Daemon, until
from standard_client import Standard, legacy, modern
from wire import head, split_answers

if TYPE_CHECKING:
    from pathlib import Path

    from harness import Answer


def started(daemon: Daemon) -> int:
    return sum(record["phase"] == "start" for record in daemon.audit())


# --- 16: no handshake at all ----------------------------------------------------------------------------------------


def test_a_modern_client_needs_no_handshake_and_a_legacy_one_works_meanwhile(
    mcp: Standard, fixture_daemon: Daemon, tmp_path: Path
) -> None:
    """Source: try-out 16."""
    old = {"MCP-Protocol-Version": "2025-06-18"}
    for answer in (mcp.modern("server/discover"), mcp.call("bash", command="echo hi")):
        assert answer.status == 200
        assert "mcp-session-id" not in answer.headers
    wrong = mcp.modern("tools/call", {"name": "bash", "arguments": {}}, {"Mcp-Name": "read"})
    assert (wrong.status, wrong.error["code"]) == (400, -32020)
    unknown = mcp.modern("tools/call", {"name": "bash"}, version="2031-01-01")
    assert (unknown.status, unknown.error["code"]) == (400, -32022)
    assert unknown.error["data"]["supported"] == ["2026-07-28"]

    note = tmp_path / "pid"
    command = f"echo $$ > {note}; sleep 30"
    message, headers = modern("tools/call", {"name": "bash", "arguments": {"command": command, "wait": 60}})
    with mcp.stream(message, headers):
        process = int(until(lambda: note.exists() and note.read_text().strip(), what="the command has started"))
        assert mcp.legacy("tools/call", {"name": "echo", "arguments": {"text": "x"}}, old).text == "x"
    until(lambda: not psutil.pid_exists(process), what="the command of a dropped connection ends")
    assert mcp.legacy("tools/list", headers=old).result["tools"]
    fixture_daemon.alive()


# --- 17: manners of clients (the rest is in test_flow_standard_eras) ------------------------------------------------


def test_200_megabytes_are_refused_without_being_read(fixture_daemon: Daemon, mcp: Standard) -> None:
    """Source: try-out 17."""
    lines = ("Host: 127.0.0.1", f"Authorization: Bearer {fixture_daemon.token}", f"Content-Length: {200 << 20}")
    said = fixture_daemon.raw(head("POST /mcp HTTP/1.1", *lines) + b'{"jsonrpc":', seconds=3)

    assert split_answers(said)[0].status == 413
    assert fixture_daemon.rss_mb < 120
    assert mcp.legacy("ping").result == {}


# --- 18: a web page knocks ------------------------------------------------------------------------------------------


def knock(daemon: Daemon, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
    sent = {
        "Host": f"127.0.0.1:{daemon.port}",
        "Authorization": f"Bearer {daemon.token}",
        "Content-Length": str(len(body)),
        "Connection": "close",
    } | headers
    lines = [f"{name}: {value}" for name, value in sent.items()]
    return split_answers(daemon.raw(head(f"{method} {path} HTTP/1.1", *lines) + body))[0]


FOREIGN = (
    ("POST", {"Origin": "https://pages.example"}),
    ("OPTIONS", {"Origin": "https://pages.example", "Access-Control-Request-Method": "POST"}),
    ("POST", {"Origin": "null"}),
    ("POST", {"Host": "rebind.example:80"}),
)


@pytest.mark.parametrize(("method", "headers"), FOREIGN)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/", "/xfer/x", "/metrics"])
def test_a_foreign_page_is_refused_before_any_tool_is_looked_at(
    fixture_daemon: Daemon, path: str, method: str, headers: dict[str, str]
) -> None:
    """Source: try-out 18."""
    before = started(fixture_daemon)
    message, usual = modern("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    sent = {name: str(value) for name, value in usual.items()} | headers
    answer = knock(fixture_daemon, method, path, json.dumps(message).encode() if method == "POST" else b"", sent)

    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers
    assert started(fixture_daemon) == before


def test_the_own_machine_is_served_with_and_without_an_origin(fixture_daemon: Daemon) -> None:
    """Source: try-out 18."""
    body = json.dumps(legacy("ping")[0]).encode()
    for headers in ({}, {"Origin": f"http://localhost:{fixture_daemon.port}"}):
        answer = knock(fixture_daemon, "POST", "/mcp", body, headers)
        assert answer.result == {}
        assert answer.headers.get("access-control-allow-origin") != "*"


def test_a_daemon_for_every_address_without_a_token_does_not_start(tmp_path: Path) -> None:
    """Source: try-out 18: refused with a reason; an empty token is no token here."""
    daemon = Daemon(tmp_path / "home", settings={"host": "0.0.0.0", "token": ""})
    ended = subprocess.run(
        [sys.executable, "-m", "a2mcp", "serve"],
        env=daemon.environment, capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip

    assert ended.returncode == 2
    assert "token" in ended.stderr or "host" in ended.stderr


# --- 22: numbers in quotes ------------------------------------------------------------------------------------------


@pytest.fixture
def five(tmp_path: Path) -> str:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"line {number}\n" for number in range(1, 6)))
    return str(path)


def read(mcp: Standard, path: str, limit: str) -> Any:
    """The limit is written as it stands, since a JSON library would not send some of these."""
    message, headers = modern("tools/call", {"name": "read", "arguments": {"path": path, "limit": "LIMIT"}})
    return mcp.send(json.dumps(message).replace('"LIMIT"', limit).encode(), headers).result


@pytest.mark.parametrize("limit", ["3", '"3"', "3.0", "3e0"])
def test_a_number_that_is_meant_is_taken(mcp: Standard, five: str, limit: str) -> None:
    """Source: try-out 22."""
    result = read(mcp, five, limit)

    assert result["isError"] is False, result
    assert "line 3" in result["content"][0]["text"]
    assert "line 4" not in result["content"][0]["text"]


@pytest.mark.parametrize("limit", ['"3.5"', '" 3"', '"3.0"', '"12px"', '""', "true", "-1", "3.5", "[]", "9" * 400])
def test_a_number_that_is_none_is_refused_by_name(mcp: Standard, five: str, limit: str) -> None:
    """Source: try-out 22: naming the field, what was expected and what came."""
    result = read(mcp, five, limit)

    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("Argument 'limit': expected ")
    assert "received" in result["content"][0]["text"]


def test_a_huge_limit_is_refused_or_clamped_and_said_so(mcp: Standard, five: str) -> None:
    """Source: try-out 22."""
    result = read(mcp, five, "9007199254740993")

    assert "limit" in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("written", "all_of_them"), [('"false"', False), ('"true"', True), ("false", False), ("true", True)]
)
def test_a_boolean_in_quotes_is_one(mcp: Standard, five: str, written: str, all_of_them: bool) -> None:
    """Source: try-out 22."""
    change = {"oldText": "line", "newText": "row", "all": "ALL"}
    message, headers = modern("tools/call", {"name": "edit", "arguments": {"path": five, "edits": [change]}})
    result = mcp.send(json.dumps(message).replace('"ALL"', written).encode(), headers).result

    assert result["isError"] is not all_of_them, result


@pytest.mark.parametrize("written", ['"no"', "0", '"maybe"', "7"])
def test_what_is_no_boolean_is_taken_for_one_or_refused_by_name(mcp: Standard, five: str, written: str) -> None:
    """Source: try-out 22: no silent default."""
    change = {"oldText": "line", "newText": "row", "all": "ALL"}
    message, headers = modern("tools/call", {"name": "edit", "arguments": {"path": five, "edits": [change]}})
    result = mcp.send(json.dumps(message).replace('"ALL"', written).encode(), headers).result

    assert result["isError"] is True
    text = result["content"][0]["text"]
    assert "all" in text or "5" in text
