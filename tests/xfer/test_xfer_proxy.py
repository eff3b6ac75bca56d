"""The proxy in front of dufs: what is changed on the way, and what a program that misbehaves can do to a caller."""

from __future__ import annotations

import base64
import io
import queue
import socket
import threading
import time

import pytest
from fake_dufs import BIG, FakeDufs
from harness import until
from hypothesis import given, settings
from hypothesis import strategies as st

from a2mcp.clock import SystemClock
from a2mcp.host.process import inherited
from a2mcp.obtain.programs import Found
from a2mcp.xfer.dufs import Down, Dufs, Up
from a2mcp.xfer.proxy import Exchange, Request, Truncated, Unreachable, Upstream

STALL_S = 10.0


class Running:
    """A stand-in that was started as the daemon starts it."""

    def __init__(self, folder, mode="good"):
        self.fake = FakeDufs(folder, mode)
        self.told = queue.SimpleQueue()
        self.server = Dufs(Found(self.fake.path, "path"), folder, tell=self.told.put, clock=SystemClock())
        self.server.start()

    def ask(self, what="ok", method="GET", *, headers=(), body=None, stall_s=STALL_S, target=None):
        """One exchange: the head and the whole body."""
        exchange = Exchange(self.server.upstream, stall_s=stall_s)
        try:
            stream = None if body is None else io.BytesIO(body)
            request = Request(method, target or f"/xfer/{what}", tuple(headers), stream, len(body or b""))
            head = exchange.ask(request)
            return head, b"".join(exchange.pieces())
        finally:
            exchange.close()

    def last(self):
        """The request that came last, its headers by lower-case name."""
        request = self.fake.notes("requests")[-1]
        return request | {"headers": [(name.lower(), value) for name, value in request["headers"]]}


@pytest.fixture(scope="module")
def dufs(tmp_path_factory):
    inherited.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DUFS_ALLOW_DELETE", "true")  # Of the operator's own dufs.
        running = Running(tmp_path_factory.mktemp("dufs"))
        assert isinstance(running.told.get(timeout=20), Up)
    inherited.cache_clear()
    yield running
    running.server.close()
    assert isinstance(running.told.get(timeout=5), Down)


# --- the request -------------------------------------------------------------------------------------------------


def test_path_and_query_go_through_as_they_stand(dufs):
    """Seed: forwarded verbatim, the query too."""
    for target in ("/xfer/a%2Fb/%2e%2e/c%20d?json&x=%00", "/xfer", "/xfer//x/../y", "/xfer/?", "/xfer/%ff%fe"):
        dufs.ask(target=target)
        assert dufs.last()["target"] == target


def test_the_callers_credentials_become_those_of_this_share(dufs):
    """Seed: `Authorization` is always replaced, whatever the caller sends."""
    dufs.ask(headers=[("Authorization", "Bearer secret"), ("X-A2mcp-Token", "secret"), ("AUTHORIZATION", "Basic eDp5")])
    sent = dufs.last()["headers"]
    (authorization,) = [value for name, value in sent if name == "authorization"]
    user, _, password = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
    assert dufs.fake.notes("runs")[0]["env"] == {"DUFS_AUTH": f"{user}:{password}@/:rw"}
    assert "secret" not in repr(sent)
    assert len(password) > 30


def test_what_belongs_to_one_connection_does_not_go_through(dufs):
    """Seed: hop-by-hop headers are dropped both ways; `Connection` may name more of them."""
    dropped = ["Keep-Alive", "Proxy-Authorization", "TE", "Trailer", "Upgrade", "X-Mine", "Accept-Encoding", "Expect"]
    dropped += ["Cookie"]
    headers = [("Connection", "keep-alive, X-Mine"), ("Range", "bytes=0-1"), ("Depth", "1"), ("Host", "evil.example")]
    dufs.ask(headers=[*headers, *((name, "x") for name in dropped), ("Transfer-Encoding", "chunked")])
    sent = dufs.last()["headers"]
    names = [name for name, _ in sent]
    assert set(names) == {"range", "depth", "host", "authorization", "accept-encoding", "connection"}
    assert len(names) == len(set(names))
    assert dict(sent)["accept-encoding"] == "identity"
    assert dict(sent)["connection"] == "close"
    assert dict(sent)["host"] == f"127.0.0.1:{dufs.server.upstream.port}"


def test_a_body_goes_through_with_its_length(dufs):
    """Ours: an upload, and one of nothing."""
    for size in (0, 1, 70_000, 5_000_000):
        head, _ = dufs.ask("up", "PUT", body=b"x" * size)
        assert head.status == 200
        assert dufs.last()["body"] == size
        assert dict(dufs.last()["headers"])["content-length"] == str(size)


def test_a_refusal_that_comes_before_the_body_is_taken_is_passed_on(dufs):
    """Ours: dufs answers 403 to an upload over a file without reading it."""
    head, body = dufs.ask("early", "PUT", body=b"x" * 30_000_000)
    assert (head.status, body) == (403, b"Forbidden")


# --- the response ------------------------------------------------------------------------------------------------


def test_a_redirect_is_passed_on_and_not_followed(dufs):
    """Row X04; seed: 3xx as it is."""
    head, _ = dufs.ask("redirect")
    assert (head.status, head.reason) == (302, "Found")
    assert ("Location", "https://evil.example/x") in head.headers
    # By name: whom the test before has left may be noted only now.
    targets = [note["target"] for note in dufs.fake.notes("requests")]
    assert [target for target in targets if "redirect" in target] == ["/xfer/redirect"]


def test_headers_of_one_connection_and_of_the_credentials_stay_behind(dufs):
    """Row X04 and seed: `Connection: close, X-A`; `www-authenticate` is dropped. Ours: cookies are, both ways."""
    head, body = dufs.ask("hop")
    assert head.headers == (("X-B", "2"), ("ETag", '"1-2"'))
    assert body == b"ok\n"


@pytest.mark.parametrize("what", ["cr", "lf", "space-name", "folded"])
def test_a_header_that_would_become_another_is_no_response(dufs, what):
    """Row X04: a CRLF header attempt."""
    with pytest.raises(Unreachable, match="malformed"):
        dufs.ask(what)


@pytest.mark.parametrize("what", ["two-lengths", "both", "gzip-coding"])
def test_a_length_that_can_be_read_in_two_ways_is_no_response(dufs, what):
    """Row X04: wrong Content-Length; ours: what smuggling is made of."""
    with pytest.raises(Unreachable, match="length"):
        dufs.ask(what)


@pytest.mark.parametrize("what", ["huge-head", "not-http", "nothing"])
def test_what_is_no_http_is_no_response(dufs, what):
    """Row X04: headers without end."""
    with pytest.raises(Unreachable):
        dufs.ask(what)


@pytest.mark.parametrize("what", ["short", "cut-chunks", "broken-chunks"])
def test_a_body_that_is_not_whole_is_never_taken_for_whole(dufs, what):
    """Row X04: dies mid-body."""
    with pytest.raises(Truncated):
        dufs.ask(what)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("long", b"oka"),
        ("chunked", b"abcdefg"),
        ("until-close", b"all of it"),
        ("continue", b"ok\n"),
        ("forbidden", b"Forbidden"),
    ],
)
def test_every_way_to_say_how_long_a_body_is(dufs, what, expected):
    """Ours; row X04: what is behind the announced length is dropped."""
    assert dufs.ask(what)[1] == expected


def test_a_response_without_a_body_keeps_its_length(dufs):
    """Ours: HEAD and 304."""
    head, body = dufs.ask("big", "HEAD")
    assert (head.length, head.has_body, body) == (BIG, False, b"")
    head, body = dufs.ask("not-modified")
    assert (head.status, head.length, body) == (304, None, b"")


def test_a_large_body_comes_in_pieces(dufs):
    """Ours: no response is held in memory as a whole."""
    exchange = Exchange(dufs.server.upstream, stall_s=STALL_S)
    exchange.ask(Request("GET", "/xfer/big", ()))
    sizes = [len(piece) for piece in exchange.pieces()]
    exchange.close()
    assert sum(sizes) == BIG
    assert max(sizes) <= 64 * 1024


def test_silence_has_an_end(dufs):
    """Row X04: never answers."""
    began = time.monotonic()
    with pytest.raises(Unreachable):
        dufs.ask("never", stall_s=0.2)
    assert time.monotonic() - began < 5


def test_an_exchange_can_be_ended_from_elsewhere(dufs):
    """Row X04: the slot is freed when the client leaves."""
    exchange = Exchange(dufs.server.upstream, stall_s=60)
    seen = queue.SimpleQueue()

    def ask():
        try:
            exchange.ask(Request("GET", "/xfer/never?aborted", ()))
        except Unreachable as error:
            seen.put(error)

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: any("aborted" in note["target"] for note in dufs.fake.notes("requests")), what="the request")
    exchange.abort()
    seen.get(timeout=5)
    thread.join(5)
    exchange.close()


def test_nobody_there_is_said_without_the_credentials():
    """Ours: neither a traceback nor a log line shows them."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    upstream = Upstream(port, "Basic c2VjcmV0")
    exchange = Exchange(upstream, stall_s=1)
    with pytest.raises(Unreachable):
        exchange.ask(Request("GET", "/xfer/", ()))
    exchange.close()
    assert "c2VjcmV0" not in repr(upstream)


@settings(max_examples=150)
@given(st.binary(max_size=300), st.binary(max_size=60))
def test_no_bytes_make_it_anything_but_a_response_or_a_refusal(first, second):
    """Row X04, as a property: no header of the outcome holds a line break, and nothing else is raised."""
    ours, theirs = socket.socketpair()
    exchange = Exchange(Upstream(1, ""), stall_s=1)
    exchange._socket.close()
    exchange._socket = ours
    theirs.sendall(b"HTTP/1.1 200 OK\r\nX: " + first + b"\r\n" + second + b"\r\n\r\n")
    theirs.close()
    try:
        head = exchange._head("GET")
        b"".join(exchange.pieces())
    except (Unreachable, Truncated):
        return
    finally:
        exchange.close()
    assert not any(set("\r\n\0") & set(name + value) for name, value in head.headers)


# --- the program -------------------------------------------------------------------------------------------------


def test_the_secret_is_in_no_argument(dufs, tmp_path):
    """Ours: every user of the machine can read arguments."""
    run = dufs.fake.notes("runs")[0]
    secret = run["env"]["DUFS_AUTH"].split("@")[0]
    assert secret.split(":")[1] not in " ".join(run["argv"])
    assert run["argv"][-1] == str(dufs.fake.path.parent)
    assert run["argv"][4:6] == ["--path-prefix", "/xfer"]
    assert "--allow-upload" in run["argv"]
    assert not [word for word in run["argv"] if "delete" in word or word == "-A"]


def test_a_program_that_does_not_start_is_quoted(tmp_path):
    """Seed: the child's own words."""
    running = Running(tmp_path, "dies")
    down = running.told.get(timeout=20)
    assert down.reason == "error: the argument '--port' was refused"
    running.server.close()


def test_a_program_that_quotes_its_environment_tells_no_secret(tmp_path):
    """Issue 5, P7: the caller who wanted the share gets these words."""
    running = Running(tmp_path, "tells")
    down = running.told.get(timeout=20)
    secret = running.fake.notes("runs")[0]["env"]["DUFS_AUTH"].partition("@")[0].partition(":")[2]
    assert len(secret) == 43
    assert secret not in down.reason
    assert down.reason == "error: a bad rule: share:<secret>@/:rw"
    running.server.close()


def test_a_program_that_is_not_there_is_named(tmp_path):
    """Row X14."""
    told = queue.SimpleQueue()
    server = Dufs(Found(tmp_path / "missing", "configured"), tmp_path, tell=told.put, clock=SystemClock())
    server.start()
    assert str(tmp_path / "missing") in told.get(timeout=20).reason
    server.close()


def test_a_program_that_does_not_listen_to_signals_is_killed(tmp_path, monkeypatch):
    """Ours: closing ends it whatever it does."""
    monkeypatch.setattr("a2mcp.xfer.dufs.TERM_S", 0.2)
    running = Running(tmp_path, "deaf")
    assert isinstance(running.told.get(timeout=20), Up)
    began = time.monotonic()
    running.server.close()
    assert isinstance(running.told.get(timeout=5), Down)
    assert time.monotonic() - began < 3
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", running.server.upstream.port))
