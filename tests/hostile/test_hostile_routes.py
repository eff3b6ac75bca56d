"""Every route by every method and every credential: nobody without the token changes anything, and the order holds.

The routes are those that the guard and the app read, so that a new one is tried without anybody thinking of it.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import falcon.inspect
import pytest
import untouched
import wire
from edge import Front
from harness import Daemon, running
from rows import row

from a2mcp.http.app import make_app
from a2mcp.http.routes import ANY_METHOD, BRIDGE, RESERVED, Access, Route, route_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROUTES = (*RESERVED, BRIDGE)
METHODS = sorted(ANY_METHOD | {"TRACE", "CONNECT", "SEARCH", "REPORT", "QUERY", "FOO", "PRI"})
DISGUISED = (
    "/xfer%2fa",
    "/%78fer/a",
    "//mcp",
    "/mcp/../xfer/a",
    "/MCP",
    "/mcp;x",
    "/mcp%00",
    "/healthz/",
    "/metrics%2f",
    "/ui%2f",
)
"""Paths that look like others; they are the bridge's, which asks for the token."""
INSIDE_THE_PAGE = ("/ui/enter", "/ui/leave", "/ui/api/events")


PATHS = [
    *(route.path for route in ROUTES),
    *(route.path.rstrip("/") + "/a/b" for route in ROUTES if route.subtree),
    *DISGUISED,
    *INSIDE_THE_PAGE,
]


def _credentials(daemon: Daemon) -> dict[str, tuple[list[str], str]]:
    """Header lines and a query for everything that is not the token in its place."""
    token = daemon.token
    basic = base64.b64encode(f"a2mcp:{token}".encode()).decode()
    return {
        "none": ([], ""),
        "wrong": (["Authorization: Bearer " + "w" * len(token)], ""),
        "empty": (["Authorization:"], ""),
        "scheme alone": (["Authorization: Bearer"], ""),
        "no scheme": ([f"Authorization: {token}"], ""),
        "beginning": ([f"Authorization: Bearer {token[:-1]}"], ""),
        "more": ([f"Authorization: Bearer {token}x"], ""),
        "basic": ([f"Authorization: Basic {basic}"], ""),
        "other header": ([f"Proxy-Authorization: Bearer {token}", f"X-Api-Key: {token}"], ""),
        "cookie": ([f"Cookie: token={token}; a2mcp_page={token}; Authorization=Bearer {token}"], ""),
        "query": ([], f"?token={token}&access_token={token}"),
        "visit": (["X-A2MCP-Page: x", "Cookie: a2mcp_page=x", "Sec-Fetch-Site: same-origin"], ""),
        "own header, wrong": (["X-A2MCP-Token: wrong"], ""),
    }


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is shared."""
    made = tmp_path_factory.mktemp("shared")
    (made / "a").write_text("what is shared")
    return made


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory, share: Path) -> Iterator[Daemon]:
    """A daemon with a share, so that its route has something to lose."""
    with running(tmp_path_factory.mktemp("routes") / "home") as daemon:
        assert daemon.session().call("xfer_share", path=str(share)).result["isError"] is False
        yield daemon


@pytest.fixture(scope="module")
def session(victim: Daemon) -> str:
    """A session that is alive, and known to the attacker."""
    opened = victim.session().session
    assert opened is not None
    return opened


def _request(daemon: Daemon, method: str, path: str, session: str, *lines: str, host: str = "127.0.0.1") -> bytes:
    """A request that would write a file if it were let in and understood."""
    body = wire.call("write", path=str(daemon.home / "written"), content="x")
    usual = [f"Host: {host}", f"Content-Length: {len(body)}", "Connection: close", f"mcp-session-id: {session}"]
    return wire.head(f"{method} {path} HTTP/1.1", *usual, f"Destination: http://{host}/xfer/b", *lines) + body


def _answered(daemon: Daemon, request: bytes) -> tuple[int, bytes]:
    """The status and everything that came, of which some things never do."""
    said = daemon.raw(request)
    assert said.startswith(b"HTTP/1.1 "), (request, said)
    for never in (daemon.token.encode(), b"Access-Control", b"\r\nServer:", b"Traceback"):
        assert never.lower() not in said.lower()
    return int(said.split()[1]), said


def _refusals(route: Route, method: str) -> set[int]:
    """How the contract answers somebody without the token; for the page, what its own checks make of it."""
    if method not in route.methods:
        return {405}
    return {
        Access.TOKEN: {401},
        Access.ANYBODY: {200},
        Access.HERE: {200},
        Access.PAGE: {200, 308, 401, 403, 404, 405},
    }[route.access]


def test_the_app_serves_the_routes_of_the_table_and_no_others() -> None:
    """Row A01: what is swept here is all there is."""
    app = falcon.inspect.inspect_app(make_app(Front()))

    assert app.routes == []
    assert app.static_routes == []
    assert len(app.sinks) == len(ROUTES)
    assert {route_for(path) for path in PATHS} == set(ROUTES)


@pytest.mark.parametrize("path", PATHS, ids=row("A01"))
def test_nobody_without_the_token_changes_anything(victim: Daemon, share: Path, session: str, path: str) -> None:
    """P1; rows A01, A05, A10, H11: by no method of any route; each is answered as the contract says."""
    route, before = route_for(path), untouched.of(victim, share)
    for name, (lines, query) in _credentials(victim).items():
        for method in METHODS:
            status, said = _answered(victim, _request(victim, method, path + query, session, *lines))
            assert status in _refusals(route, method), (name, method, said)
            assert (b"\r\nWWW-Authenticate:" in said) == (status == 401 and route.standard), (name, method, said)
            assert status != 405 or b"\r\nContent-Length: 0\r\n" in said, (name, method, said)

    assert untouched.of(victim, share) == before
    assert not (victim.home / "written").exists()


@pytest.mark.parametrize("path", PATHS, ids=row("O03"))
def test_foreign_names_come_before_method_and_token(victim: Daemon, session: str, path: str) -> None:
    """Rows O03, O04: on every route, with whatever method, and with the token: 403."""
    token = f"Authorization: Bearer {victim.token}"
    for method in METHODS:
        for lines, host in (([token, "Origin: https://evil.example"], "127.0.0.1"), ([token], "evil.example")):
            status, said = _answered(victim, _request(victim, method, path, session, *lines, host=host))
            assert status == 403, (method, said)
    assert not (victim.home / "written").exists()


@pytest.mark.parametrize("path", PATHS, ids=row("H11"))
def test_nothing_breaks_for_who_has_the_token(victim: Daemon, path: str) -> None:
    """Row H11: with the token, too, every method has an answer that is no fault of ours."""
    session = str(victim.session().session)
    for method in METHODS:
        for body in (b"", b"{", b"[]", wire.message("ping")):
            request = wire.head(
                f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", "Connection: close",
                f"Authorization: Bearer {victim.token}", f"mcp-session-id: {session}", "Depth: 1", "Range: bytes=0-0",
            )  # fmt: skip
            status, said = _answered(victim, request + body)
            assert status < 500, (method, body, said)
            assert (status == 405) >= (method not in route_for(path).methods), (method, said)


def test_a_method_in_lower_case_is_none(victim: Daemon, session: str) -> None:
    """Row H11: RFC 9110 §9.1."""
    for route in ROUTES:
        assert _answered(victim, _request(victim, "post", route.path, session))[0] == 400
