"""The bridge's bearer token from outside: how it is read, how refusals are counted, where it is never found."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

import pytest
import wire
from harness import Daemon, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _alive_afterwards(shared_daemon: Daemon) -> Iterator[None]:
    yield
    shared_daemon.alive()


@pytest.mark.parametrize(
    "given", ["Bearer {}", "bearer {}", "BEARER {}", "bEaReR {}", "Bearer  {}", "Bearer\t{}", "Bearer {} "]
)
def test_the_scheme_is_matched_in_any_case_and_the_space_may_be_wider(shared_daemon: Daemon, given: str) -> None:
    r"""Seed, "Authentication" (鉴权): scheme case-insensitive, /^Bearer\s+(.+)$/i; row A02, on ASCII space."""
    client = shared_daemon.client(token=None)

    assert client.ask("initialize", Authorization=given.format(shared_daemon.token)).status == 200


@pytest.mark.parametrize(
    "given",
    [
        "", "Bearer", "Bearer ", "Basic {}", "Bearer\xa0{}", "Bearer{}", "{}", "Token {}", "Bearer x{}", "Bearer {}x",
        "Bearer {} {}", "Bearer {}, Bearer {}", 'Bearer "{}"', "Bearer \xe9", "Bearer {}\xff", "Bearer \x85{}",
    ],
)  # fmt: skip
def test_anything_else_is_401_with_the_fixed_body(shared_daemon: Daemon, given: str) -> None:
    """Seed, "Authentication" (鉴权): 401, the body, and no WWW-Authenticate; rows A02 and A05."""
    with wire.Line(shared_daemon.port) as line:
        value = given.format(shared_daemon.token, shared_daemon.token)
        line.send(wire.post(wire.INITIALIZE, None, f"Authorization: {value}"))
        answer = line.answer()

    assert answer.status == 401
    assert answer.body == b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"unauthorized"}}'
    assert "www-authenticate" not in answer.headers
    assert "mcp-session-id" not in answer.headers


def test_every_kind_of_request_is_checked(shared_daemon: Daemon) -> None:
    """Seed, "Authentication" (鉴权): every request, with initialize and DELETE, before any change of state; row A10."""
    client = shared_daemon.session()

    refused = [
        client.ask(method, {"name": "bash", "arguments": {"command": "true"}}, Authorization=None).status
        for method in ("initialize", "ping", "tools/list", "tools/call", "notifications/x", "nothing")
    ]
    refused.append(client.send("DELETE", Authorization=None).status)
    refused.append(client.send("DELETE", Authorization="Bearer wrong").status)

    assert refused == [401] * 8
    assert client.ask("ping").result == {}, "the session survives"


def test_the_token_counts_in_its_header_only(shared_daemon: Daemon) -> None:
    """Row A05: query, cookie, body, other headers and basic password are no token, and none of them is ever logged."""
    token = shared_daemon.token
    basic = base64.b64encode(f"user:{token}".encode()).decode()
    requests = [
        wire.post(wire.INITIALIZE, None, path=f"/?access_token={token}&token={token}"),
        wire.post(wire.INITIALIZE, None, f"Cookie: token={token}; Authorization=Bearer {token}"),
        wire.post(wire.INITIALIZE, None, f"X-Authorization: Bearer {token}", f"X-Api-Key: {token}"),
        wire.post(wire.INITIALIZE, None, f"Proxy-Authorization: Bearer {token}"),
        wire.post(wire.INITIALIZE, None, f"Authorization: Basic {basic}"),
        wire.post(wire.message("initialize", params={"token": token, "Authorization": f"Bearer {token}"}), None),
        wire.head("POST / HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 0", f"Authorization_: Bearer {token}"),
        wire.head(
            "POST / HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 0", "X: y", f"\tAuthorization: Bearer {token}"
        ),
    ]

    for request in requests:
        said = shared_daemon.raw(request)
        assert wire.statuses(said)[0] in (400, 401), request
        assert token.encode() not in said
    assert token not in shared_daemon.stderr
    assert token not in (shared_daemon.home / "a2mcp.log").read_text() if shared_daemon.audit() else True


def test_refusals_are_told_on_stderr_first_and_every_fiftieth_time_and_never_in_the_log(tmp_path: Path) -> None:
    """Seed, "Authentication" (鉴权): one line at the first failure, then one every 50; row A09."""
    with running(tmp_path / "home") as daemon:
        good = daemon.session()
        good.call("read", path="/nowhere")
        before = daemon.audit()
        with_nothing = daemon.client(token=None)

        for _ in range(500):
            assert with_nothing.ask("tools/call", {"name": "bash"}).status == 401
            with_nothing.close()
        lines = re.findall(r"^\[a2mcp\] (\d+) unauthorized attempt\(s\)$", daemon.stderr, re.MULTILINE)

        assert [int(number) for number in lines] == [1, *range(51, 501, 50)]
        assert daemon.stderr.count("\n") == len(lines)
        assert daemon.audit() == before
        assert good.ask("ping").result == {}


def test_a_foreign_method_or_origin_is_no_failed_attempt(tmp_path: Path) -> None:
    """Seed, "Order of processing" (请求处理顺序): what is refused earlier never reaches the token."""
    with running(tmp_path / "home") as daemon:
        stranger = daemon.client(token=None)
        for _ in range(3):
            assert stranger.send("GET").status == 405
            assert stranger.ask("ping", Origin="http://evil.example").status == 403
            assert daemon.raw(b"not http\n\n").startswith(b"HTTP/1.1 400 ")
            assert daemon.raw(b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000).startswith(b"HTTP/1.1 431 ")

        assert daemon.stderr == ""


def test_the_old_token_is_dead_at_once_also_on_an_open_connection(tmp_path: Path) -> None:
    """Issue, the operator's channel: rotate makes the old token dead at once, and remembered heads do not let it in."""
    with running(tmp_path / "home") as daemon:
        client = daemon.session()
        assert [client.ask("ping").status for _ in range(3)] == [200] * 3

        rotated = daemon.cli("rotate")
        after = client.ask("ping")

        assert rotated.returncode == 0, rotated.stderr
        assert after.status == 401
