"""The operator's page over HTTP: who is let in, what it may ask, and what a foreign page meets."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys

import httpx
import pytest
from harness import Daemon, running, until
from inflight import Later
from visitor import Visitor, link_of
from wire import Line, head

from a2mcp.auth.visit import VISITS
from a2mcp.http.ui import FOLDER, HEADERS

PAGE_BYTES = 120 * 1024


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    """A daemon that asks before it writes and may be called by another name, shared by this module."""
    settings = {"approval": {"mode": "write"}, "allowed_hosts": ["a2mcp.example"]}
    with running(tmp_path_factory.mktemp("ui") / "home", settings=settings) as started:
        yield started


@pytest.fixture
def visitor(asking: Daemon) -> Visitor:
    return Visitor(asking)


# --- the way in ----------------------------------------------------------------------------------------------------


def test_a_link_works_once(asking):
    """Issue 6.1: the second use is refused, with what to do."""
    visitor = Visitor(asking)
    code = link_of(asking).partition("#")[2]
    assert visitor.enter(code).status == 200

    again = visitor.enter(code)
    assert again.status == 403
    assert "a2mcp ui" in again.body.decode()


def test_the_command_line_prints_a_link(asking):
    """Issue 6.1: `a2mcp ui --print` opens nothing."""
    link = asking.cli("ui", "--print").stdout.strip()
    assert link.startswith(f"http://127.0.0.1:{asking.port}/ui/#")
    assert Visitor(asking).enter(link.partition("#")[2]).status == 200


def test_the_cookie_is_kept_from_scripts_and_from_other_sites(visitor):
    """Issue 6.1."""
    kept = visitor.entered.headers["set-cookie"]

    assert "; HttpOnly" in kept
    assert "; SameSite=Strict" in kept
    assert "; Path=/ui/" in kept


def test_the_page_says_nothing_of_the_daemon_before_a_visit(asking):
    """Issue 6.1: its files are the same for everybody."""
    client = asking.client(token=None)

    for file in FOLDER.iterdir():
        answer = client.send("GET", f"/ui/{file.name}")
        assert (answer.status, answer.body) == (200, file.read_bytes())
        assert asking.token.encode() not in answer.body
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert {name.lower(): value for name, value in HEADERS}.items() <= answer.headers.items()


def test_the_page_weighs_little_and_asks_for_nothing_from_elsewhere():
    """Issue 6: under 120 KB in all, no outside resource, nothing inline."""
    files = list(FOLDER.iterdir())
    html = (FOLDER / "index.html").read_text()

    assert sum(file.stat().st_size for file in files) < PAGE_BYTES
    assert all("//" not in part for part in html.split('"') if part.endswith((".css", ".js", ".svg")))
    assert "style=" not in html
    assert "onclick" not in html
    script = "".join(file.read_text() for file in FOLDER.glob("*.js"))
    assert [w for w in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(") if w in script] == []


@pytest.mark.parametrize("path", ["../auth/bearer.py", "..%2fauth%2fbearer.py", "nothing.js", "api", "x/y.js", "%00"])
def test_nothing_but_the_files_of_the_page_is_served(asking, path):
    """Ours: no path leads out of the folder."""
    assert asking.client(token=None).send("GET", f"/ui/{path}").status == 404


def test_the_path_without_its_slash_leads_to_the_page(asking):
    """Ours."""
    answer = asking.client(token=None).send("GET", "/ui")

    assert (answer.status, answer.headers["location"]) == (308, "/ui/")


def test_a_visit_that_was_ended_is_over(asking):
    """Issue 6.1."""
    visitor = Visitor(asking)
    assert visitor.ask("GET", "status").status == 200

    assert visitor.ask("POST", "../leave").status in {400, 404}, "a path is taken as it stands"
    left = visitor.client.send(
        "POST", "/ui/leave", b"", Cookie=visitor.cookie, X_A2MCP_Page=visitor.key, Origin=visitor.origin
    )
    assert left.status == 204
    assert "Max-Age=0" in left.headers["set-cookie"]
    assert visitor.ask("GET", "status").status == 401


def test_a_visit_ends_with_the_daemon(tmp_path):
    """Issue 6.1: bound to this daemon run."""
    with running(tmp_path / "home") as daemon:
        visitor = Visitor(daemon)
        daemon.stop()
        daemon.start()
        visitor.client = daemon.client(token=None)
        assert visitor.ask("GET", "status", Origin=f"http://127.0.0.1:{daemon.port}").status == 401


# --- who is kept out -----------------------------------------------------------------------------------------------


def test_the_bearer_token_opens_nothing_here(asking):
    """Issue 6.1: a remote caller with the token has none of this."""
    client = asking.client()

    assert client.send("GET", "/ui/api/status").status == 401
    assert client.send("GET", "/ui/api/token").status == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": None},
        {"X_A2MCP_Page": None},
        {"X_A2MCP_Page": "x"},
        {"Cookie": "a2mcp_page=x"},
    ],
    ids=str,
)
def test_half_a_visit_is_none(visitor, headers):
    """Ours: a server on another port is given the cookie, a foreign page cannot set the header."""
    assert visitor.ask("GET", "status", **headers).status == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
    ids=str,
)
def test_a_page_from_elsewhere_neither_reads_nor_does_anything(visitor, headers):
    """Issue 6: another origin, even on this machine, even with both halves of a visit."""
    for method, path, body in (("GET", "token", None), ("POST", "approvals", {"id": "x", "approve": True})):
        answer = visitor.ask(method, path, body, **headers)
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers


def test_a_write_without_an_origin_is_refused(visitor):
    """Issue 6.1: CSRF-proof."""
    assert visitor.ask("POST", "approvals", {"id": "x", "approve": True}, Origin=None).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "a2mcp.example"},
        {"Host": "127.0.0.1.nip.io"},
        {"X_Forwarded_For": "192.0.2.1"},
        {"CF_Connecting_IP": "192.0.2.1"},
        {"Forwarded": "for=192.0.2.1"},
    ],
    ids=str,
)
def test_the_page_is_for_this_machine_alone(visitor, headers):
    """Issue 6.1: not by another name, even one that is allowed, and never passed on."""
    assert visitor.ask("GET", "status", **headers).status == 403
    assert visitor.client.send("GET", "/ui/", **headers).status == 403


def test_a_large_body_is_refused(visitor):
    """Ours: 64 KiB are enough for whatever the page says."""
    assert visitor.ask("POST", "approvals", {"id": "x" * 70_000, "approve": True}).status == 413


@pytest.mark.parametrize("path", ["stop", "token/rotate", "page", "programs"])
def test_the_page_does_not_have_all_that_the_channel_has(visitor, path):
    """Ours: it makes no links and no tokens, and does not end the daemon."""
    assert visitor.ask("POST", path, {}).status == 404


# --- what it shows and does ----------------------------------------------------------------------------------------


def test_the_page_sees_what_the_operator_sees(asking, visitor):
    """Issue 6.2."""
    assert visitor.ask("GET", "status").json["pid"] == asking.process.pid
    assert visitor.ask("GET", "token").json == {"token": asking.token}
    for path in ("approvals", "grants", "calls", "sessions", "audit?last=5", "jobs", "doctor"):
        assert isinstance(visitor.ask("GET", path).json, list), path
    assert visitor.ask("GET", "share").json is None
    assert visitor.ask("GET", "tunnel").json["state"] == "closed"


def test_the_first_answer_counts_and_the_second_is_told(asking, visitor):
    """Issue 6, "Bad input": two operators answer the same approval."""
    session = asking.session()
    call = Later(lambda: session.call("bash", command="echo <b>ran</b>"))
    (waits,) = until(lambda: visitor.ask("GET", "approvals").json, what="a call waits")
    other = Visitor(asking)

    assert visitor.ask("POST", "approvals", {"id": waits["id"], "approve": True}).json["approved"]
    late = other.ask("POST", "approvals", {"id": waits["id"], "approve": False})
    assert late.status == 409
    assert "before you answered" in late.json["error"]["text"]
    assert "ran" in call.result().text


def test_a_share_is_shown_and_stopped(asking, visitor, tmp_path):
    """Issue 6.2: the share, with stop."""
    (tmp_path / "shared").mkdir()
    asking.session().call("xfer_share", path=str(tmp_path / "shared"))
    assert visitor.ask("GET", "share").json["path"] == str(tmp_path / "shared")

    assert visitor.ask("DELETE", "share").json == {"stopped": True}
    assert visitor.ask("GET", "share").json is None
    assert visitor.ask("DELETE", "share").json == {"stopped": False}


def test_a_transfer_is_shown_counted_and_stopped(asking, visitor, tmp_path):
    """Issue 6.2 and 6.5: downloads running, with progress and stop; bytes shared."""
    with (tmp_path / "big.bin").open("wb") as file:
        file.truncate(64 << 20)
    asking.session().call("xfer_share", path=str(tmp_path / "big.bin"))
    with Line(asking.port) as wire:
        wire.send(head("GET /xfer/ HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {asking.token}"))
        (one,) = until(lambda: visitor.ask("GET", "share").json["transfers"], what="it is seen")
        assert (one["direction"], one["name"], one["total"]) == ("download", "big.bin", 64 << 20)
        assert "a2mcp_share_transfers 1\n" in asking.client(token=None).send("GET", "/metrics").body.decode()

        assert visitor.ask("POST", "share/stop", {"id": one["id"]}).status == 202
        until(lambda: not visitor.ask("GET", "share").json["transfers"], what="it has ended")
    assert visitor.ask("POST", "share/stop", {"id": one["id"]}).status == 404
    metrics = asking.client(token=None).send("GET", "/metrics").body.decode()
    assert re.search(r'a2mcp_share_bytes_total\{direction="download"\} [1-9]', metrics)
    visitor.ask("DELETE", "share")


def test_events_are_told_and_go_on_where_they_broke_off(asking, visitor):
    """Issue 6.2: reconnects and catches up by sequence without gaps."""
    session = asking.session()
    session.call("read", path="stderr.txt")
    first = stream(asking, visitor, "?history=50", {}, until_kind="call.done")
    session.call("read", path="stderr.txt")
    more = stream(asking, visitor, "", {"Last-Event-ID": str(first[-1]["sequence"])}, until_kind="call.done")

    assert more[0]["sequence"] == first[-1]["sequence"] + 1


def test_events_need_a_visit(asking, visitor):
    """Issue 6.1."""
    assert visitor.ask("GET", "events", X_A2MCP_Page=None).status == 401


def test_events_end_with_the_visit(asking, visitor):
    """Ours: a visit ends after its hours, or when there are too many; a stream that is open must not outlive it."""
    shown = [f"Cookie: {visitor.cookie}", f"X-A2MCP-Page: {visitor.key}"]
    with (
        Line(asking.port) as wire,
        httpx.Client(transport=httpx.HTTPTransport(uds=operators_socket(asking))) as channel,
    ):
        wire.send(head("GET /ui/api/events HTTP/1.1", f"Host: 127.0.0.1:{asking.port}", *shown))
        until(lambda: b": watching" in wire.socket.recv(65536), what="it is told")
        for _ in range(VISITS):
            code = channel.post("http://localhost/page").json()["url"].partition("#")[2]
            assert visitor.enter(code).status == 200
        until(lambda: wire.socket.recv(65536).endswith(b"0\r\n\r\n"), what="the stream has ended")
    assert visitor.ask("GET", "status").status == 401


def operators_socket(daemon: Daemon) -> str:
    return str(next(daemon.home.rglob("operator.sock")))


def stream(daemon: Daemon, visitor: Visitor, query: str, more: dict[str, str], *, until_kind: str) -> list[dict]:
    """Read events until one of this kind."""
    headers = {"Host": f"127.0.0.1:{daemon.port}", "Cookie": visitor.cookie, "X-A2MCP-Page": visitor.key} | more
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as sock:
        sock.sendall(f"GET /ui/api/events{query} HTTP/1.1\r\n{head}\r\n".encode())
        received = ""
        while True:
            received += sock.recv(65536).decode()
            found = [
                json.loads(line[6:])
                for line in received.split("\n")
                if line.startswith("data: {") and line.endswith("}")
            ]
            if found and found[-1]["kind"] == until_kind:
                return found


# --- the command ---------------------------------------------------------------------------------------------------


def test_a_browser_is_given_a_file_that_nobody_else_can_read(asking, tmp_path):
    """Ours: the arguments of a program can be read by everybody on the machine."""
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}.new\nmv {seen}.new {seen}\n')
    browser.chmod(0o700)
    done = subprocess.run(
        [sys.executable, "-m", "a2mcp", "ui"], cwd=asking.home, env=asking.environment | {"BROWSER": str(browser)},
        capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip

    until(seen.exists, what="the browser was started")
    assert seen.read_text() == (asking.home / "page.html").as_uri()
    assert (asking.home / "page.html").stat().st_mode & 0o777 == 0o600
    assert "/ui/#" in (asking.home / "page.html").read_text()
    assert "#" not in done.stdout


def test_twenty_pages_are_told_of_every_call(asking, visitor):
    """Issue 6: twenty pages open; no event is missing on any of them without a gap that says so."""
    session = asking.session()
    pages = [following(visitor) for _ in range(20)]
    for number in range(40):
        session.call("read", path=f"call-{number}")
    newest = max(event["sequence"] for event in stream(asking, visitor, "?history=1", {}, until_kind="call.done"))

    for page in pages:
        numbers = covered(page, newest)
        assert numbers == list(range(numbers[0], newest + 1))
        assert numbers[0] <= newest - 79


def covered(sock: socket.socket, newest: int) -> list[int]:
    """The numbers that a page is told of until the newest: of events, and of those in gaps."""
    numbers: list[int] = []
    rest = ""
    with sock:
        while not numbers or numbers[-1] < newest:
            *blocks, rest = (rest + sock.recv(65536).decode()).split("\n\n")
            for line in (line for block in blocks for line in block.split("\n") if line.startswith("data: {")):
                event = json.loads(line[6:])
                gap = event["kind"] == "gap"
                numbers += range(event["args"]["first"], event["sequence"] + 1) if gap else [event["sequence"]]
    return numbers


# --- the end -------------------------------------------------------------------------------------------------------


def following(visitor: Visitor) -> socket.socket:
    """A stream of events that is open."""
    port = visitor.client.port
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    head = f"Host: 127.0.0.1:{port}\r\nCookie: {visitor.cookie}\r\nX-A2MCP-Page: {visitor.key}\r\n"
    sock.sendall(f"GET /ui/api/events?history=1 HTTP/1.1\r\n{head}\r\n".encode())
    received = b""
    while b"\r\n\r\n" not in received:
        received += sock.recv(1)
    assert received.startswith(b"HTTP/1.1 200 ")
    return sock


def ends(sock: socket.socket) -> bool:
    """Read until the stream ends; False when it does not."""
    with sock:
        received = b""
        while chunk := sock.recv(65536):
            received += chunk
            if received.endswith(b"0\r\n\r\n"):
                break
        return True


def test_an_open_page_does_not_hold_up_the_end_of_the_daemon(tmp_path):
    """Ours: a stream never ends by itself, and a daemon that drains waits for answers."""
    with running(tmp_path / "home") as daemon:
        daemon.session().call("read", path="stderr.txt")
        sock = following(Visitor(daemon))
        assert daemon.stop(seconds=5) == 0
        assert ends(sock)


def test_the_stream_ends_with_its_visit(asking):
    """Ours: who has left is told nothing more."""
    leaves = Visitor(asking)
    sock = following(leaves)
    left = leaves.client.send(
        "POST", "/ui/leave", b"", Cookie=leaves.cookie, X_A2MCP_Page=leaves.key, Origin=leaves.origin
    )

    assert left.status == 204
    assert ends(sock)
