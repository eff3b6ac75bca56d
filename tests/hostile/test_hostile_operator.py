"""The operator's channel: out of reach for callers, and unharmed by whatever its own user sends it."""

from __future__ import annotations

import http.client
import os
import stat
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import falcon.inspect
import pytest
import untouched
from rows import row
from watchers import connect

from a2mcp.http import ui
from a2mcp.http.operator import make_operator_app

if TYPE_CHECKING:
    from harness import Daemon

WITHOUT_RETURN = {"/stop": "the daemon would be gone", "/token/rotate": "the token would be another"}
BODIES = [
    b"", b"{", b"[]", b"null", b"5", b'{"id":5}', b'{"id":"x"}', b'{"id":"' + b"x" * 100_000 + b'"}', b'{"id":"x","more":1}', b"\xff",
    b'{"id":null,"approve":"yes"}', b'{"id":"../../x","approve":true,"scope":"ever","for_s":-1}', b'{"program":"../sh"}', b"[" * 5000,
    b'{"provider":"--help"}', b'{"enabled":"true"}', b'{"enabled":1}', b'{"id":"\\ud800"}',
]  # fmt: skip
QUERIES = [
    "", "?last=-1", "?last=" + "9" * 5000, "?id=../../etc/passwd&stream=stdout", "?id=x&offset=1e9", "?after=x", "?nothing=1", "?%ff=%00",
    "?text=" + "%5b" * 500, "?kind=call&kind=job", "?limit=0",
]  # fmt: skip


def _routes() -> dict[str, list[str]]:
    """Every path of the channel with the methods that do something there, as the app itself has them."""
    app = make_operator_app(cast("Any", SimpleNamespace()))
    found = falcon.inspect.inspect_routes(app)
    return {one.path: [method.method for method in one.methods if not method.internal] for one in found}


ROUTES = _routes()


def _ask(daemon: Daemon, method: str, target: str, body: bytes = b"") -> tuple[int, bytes]:
    connection = connect(daemon.home / "operator.sock")
    try:
        connection.putrequest(method, target, skip_host=False)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        return response.status, response.read()
    except http.client.InvalidURL:
        return 400, b"{}"
    finally:
        connection.close()


def test_the_sockets_are_for_their_user_alone(victim: Daemon) -> None:
    """P1; row U10: 0600, in a folder that is 0700."""
    for name in ("operator.sock", "events.sock"):
        found = (victim.home / name).stat()
        assert stat.S_ISSOCK(found.st_mode)
        assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o600, os.getuid())
    assert stat.S_IMODE(victim.home.stat().st_mode) == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_cannot_connect_to_them(victim: Daemon) -> None:
    """P1: by the file system alone, which root could not show."""
    victim.home.chmod(0o755)  # Were the folder open, the socket would still hold.
    try:
        for name in ("operator.sock", "events.sock"):
            path = str(victim.home / name)
            script = "import os, socket, sys; os.setgid(65534); os.setuid(65534); socket.socket(1).connect(sys.argv[1])"
            tried = subprocess.run(
                [sys.executable, "-c", script, path], capture_output=True, text=True, check=False, timeout=20
            )
            assert "PermissionError" in tried.stderr
    finally:
        victim.home.chmod(0o700)


@pytest.mark.parametrize("path", ROUTES, ids=row("A01"))
def test_nothing_of_it_is_on_the_port_even_for_who_has_the_token(victim: Daemon, path: str) -> None:
    """P1; row A01: the token is not the operator's word; the page has it by a visit alone."""
    client = victim.session()
    before = untouched.of(victim)
    for inside in (path, f"/ui/api{path}", f"/operator{path}"):
        for method in ("GET", "POST", "DELETE"):
            answer = client.send(method, inside, b'{"id":"x","approve":true}', mcp_session_id="none")
            assert answer.status in {204, 400, 401, 403, 404, 405}, (inside, method, answer.status)
            assert not answer.body or answer.json["error"], (inside, method, answer.body)

    assert untouched.of(victim) == before
    assert victim.process.poll() is None


def test_the_page_opens_nothing_that_the_channel_has_not() -> None:
    """Ours: each of its ways leads somewhere, and none that cannot be taken back is among them."""
    assert {(method, path) for method, path in ui.OPEN if method not in ROUTES.get(path, [])} == set()
    assert {path for _, path in ui.OPEN} & set(WITHOUT_RETURN) == set()


@pytest.mark.parametrize("path", [path for path in ROUTES if path not in WITHOUT_RETURN], ids=row("H14"))
def test_no_body_or_query_breaks_it(victim: Daemon, path: str) -> None:
    """Rows H14 and J04, on this channel: 4xx with the reason as JSON; never a traceback, and it goes on."""
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"):
        known = method in ROUTES[path]
        for target, body in [(path, body) for body in BODIES] + [(path + query, b"") for query in QUERIES]:
            if method == "DELETE" and path == "/tunnel":
                continue  # It is closed already, and says so.
            status, said = _ask(victim, method, target, body)
            assert status < 500, (method, target, body, said)
            assert known or status in {200, 400, 405} or method == "HEAD", (method, target, status)
    assert _ask(victim, "GET", "/status")[0] == 200


def test_what_has_no_way_back_is_known(victim: Daemon) -> None:
    """Ours: an exception above that is none any more is taken off the list."""
    assert set(WITHOUT_RETURN) <= set(ROUTES)
    assert victim.process.poll() is None


def test_the_socket_of_events_takes_one_request_and_no_other(victim: Daemon) -> None:
    """Row A01: ``GET /events`` alone; a query that is none is told."""
    for method, target, expected in (
        ("POST", "/events", 405), ("DELETE", "/events", 405), ("GET", "/", 404), ("GET", "/status", 404),
        ("GET", "/events?after=x", 400), ("GET", "/events/", 404), ("FOO", "/events", 405),
    ):  # fmt: skip
        connection = connect(victim.home / "events.sock")
        connection.request(method, target)
        assert connection.getresponse().status == expected, (method, target)
        connection.close()
