"""The parts of the server by themselves: responses as bytes, remembered heads, promises, the poller, the listener."""

from __future__ import annotations

import os
import resource
import select
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from harness import until
from hypothesis import given
from hypothesis import strategies as st
from waitress.adjustments import Adjustments
from waitress.parser import ParsingError, TransferEncodingNotImplemented

from a2mcp.auth.bearer import Bearer
from a2mcp.auth.origin import AllowedHosts
from a2mcp.errors import BodyTooLarge, CannotListen, HeadersTooLarge, InvalidRequest, SystemRefused
from a2mcp.http.guard import Guard
from a2mcp.http.routes import BRIDGE, RESERVED, route_for
from a2mcp.http.server import responses
from a2mcp.http.server.accepting import has_left
from a2mcp.http.server.heads import CACHE_ENTRIES, CACHED_BYTES, HeadCache
from a2mcp.http.server.listen import HEADROOM, LEAST, PER_COMMAND, affordable_connections, bind
from a2mcp.http.server.parked import Parked
from a2mcp.http.server.parser import RequestParser
from a2mcp.http.server.poller import READ, WRITE, Poller, SocketMap
from a2mcp.protocol.response import Response

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = b"POST /a?b HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer t\r\n"


# --- responses ----------------------------------------------------------------------------------------------------


def _written(response: Response, **options: Any) -> tuple[str, dict[str, str], bytes]:
    data = responses.encode(response, **({"close": False, "version": "1.1"} | options))
    block, _, body = data.partition(b"\r\n\r\n")
    first, *rows = block.decode().split("\r\n")
    return first, dict(row.split(": ", 1) for row in rows), body


def test_a_response_with_a_body_has_its_length_and_type() -> None:
    """Seed, "Transport": application/json; ours: always a length, no server name."""
    first, headers, body = _written(Response(200, b"{}", (("mcp-session-id", "s"),)))

    assert first == "HTTP/1.1 200 OK"
    assert body == b"{}"
    assert headers.pop("Date").endswith(" GMT")
    assert headers == {
        "Content-Type": "application/json",
        "X-Content-Type-Options": "nosniff",
        "Content-Length": "2",
        "mcp-session-id": "s",
    }


@pytest.mark.parametrize(("status", "length"), [(202, "0"), (405, "0"), (204, None), (304, None)])
def test_a_response_without_a_body_says_so(status: int, length: str | None) -> None:
    """RFC 9110 §8.6: no length on 204 and 304, zero elsewhere, and no type."""
    _, headers, body = _written(Response(status))

    assert headers.get("Content-Length") == length
    assert "Content-Type" not in headers
    assert body == b""


def test_only_what_the_peer_cannot_know_is_said_about_the_connection() -> None:
    """RFC 9112 §9.3: close where it ends, keep-alive to HTTP/1.0 only."""
    assert "Connection" not in _written(Response(200, b"x"))[1]
    assert _written(Response(200, b"x"), version="1.0")[1]["Connection"] == "keep-alive"
    for version in ("1.0", "1.1"):
        assert _written(Response(200, b"x"), version=version, close=True)[1]["Connection"] == "close"


def test_head_gets_the_length_without_the_body() -> None:
    """RFC 9110 §9.3.2."""
    _, headers, body = _written(Response(404, b"{}"), head_only=True)

    assert (headers["Content-Length"], body) == ("2", b"")


def test_an_unlisted_status_can_be_written() -> None:
    """Ours."""
    assert _written(Response(299, b"x"))[0] == "HTTP/1.1 299 Unknown"


# --- heads --------------------------------------------------------------------------------------------------------


@pytest.fixture
def cache() -> HeadCache:
    """A cache with Waitress's defaults."""
    return HeadCache(Adjustments())


def test_equal_bytes_are_parsed_once(cache: HeadCache) -> None:
    """PERF: a client sends the same head with every call."""
    assert cache.parse(HEAD) is cache.parse(bytes(HEAD))
    assert cache.parse(HEAD) is not cache.parse(HEAD + b"X: y\r\n")


def test_a_wrong_head_is_not_remembered_and_wrong_again(cache: HeadCache) -> None:
    """Ours."""
    for _ in range(2):
        with pytest.raises(ParsingError):
            cache.parse(HEAD + b"Host: b\r\n")
        with pytest.raises(TransferEncodingNotImplemented):
            cache.parse(HEAD + b"Transfer-Encoding: gzip\r\n")
    assert cache._entries == {}


def test_what_is_remembered_is_bounded(cache: HeadCache) -> None:
    """STYLE rule 12: every buffer has a chosen size; large heads are not kept."""
    cache.parse(HEAD + b"X: " + b"y" * CACHED_BYTES + b"\r\n")
    assert cache._entries == {}

    for number in range(CACHE_ENTRIES * 3):
        cache.parse(HEAD + b"X: %d\r\n" % number)
        assert len(cache._entries) <= CACHE_ENTRIES


def _parser(cache: HeadCache, **options: Any) -> RequestParser:
    guard = Guard(Bearer("t"), AllowedHosts("127.0.0.1"), body_bytes=options.pop("body_bytes", 100))
    return RequestParser(Adjustments(**options), guard, cache)


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        (b"http://127.0.0.1/metrics", b"127.0.0.1", None),
        (b"http://127.0.0.1/metrics", b"box.example", 401),
        (b"http://box.example/metrics", b"127.0.0.1", 401),
    ],
)
def test_every_name_of_a_request_must_be_this_machine(
    cache: HeadCache, target: bytes, host: bytes, status: int | None
) -> None:
    """SECURITY: an absolute target and the Host header may differ when somebody passes a request on."""
    guard = Guard(Bearer("t"), AllowedHosts("127.0.0.1", ["box.example"]), body_bytes=100)
    parser = RequestParser(Adjustments(), guard, cache, from_here=True)
    parser.received(b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")

    assert (None if parser.error is None else parser.error.status) == status


@pytest.mark.parametrize(
    ("from_here", "head", "status"),
    [
        (True, b"Host: 127.0.0.1\r\n", None),
        (True, b"Host: localhost:9\r\n", None),
        (False, b"Host: 127.0.0.1\r\n", 401),
        (False, b"Host: 127.0.0.1\r\nAuthorization: Bearer t\r\n", None),
        (True, b"Host: box.example\r\n", 401),
        (True, b"Host: 127.0.0.1\r\nX-Forwarded-For: 203.0.113.9\r\n", 401),
        (True, b"Host: 127.0.0.1\r\nCf-Connecting-Ip: 203.0.113.9\r\n", 401),
        (True, b"Host: 127.0.0.1\r\nAuthorization: Bearer wrong\r\n", None),
        (True, b"", 401),
    ],
)
def test_what_is_for_this_machine_is_judged_by_connection_and_name(
    cache: HeadCache, from_here: bool, head: bytes, status: int | None
) -> None:
    """Issue 6, item 5: loopback or bearer. SECURITY: a remembered head must not open it to another peer."""
    guard = Guard(Bearer("t"), AllowedHosts("127.0.0.1", ["box.example"]), body_bytes=100)
    version = b"HTTP/1.1" if head else b"HTTP/1.0"
    for peer in (True, from_here):
        parser = RequestParser(Adjustments(), guard, cache, from_here=peer)
        parser.received(b"GET /metrics " + version + b"\r\n" + head + b"\r\n")

    assert (None if parser.error is None else parser.error.status) == status


def test_a_chunked_request_does_not_change_what_is_remembered(cache: HeadCache) -> None:
    """Waitress writes the counted length into the headers: into those of this request only."""
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    seen = []
    for body in (b"3\r\nabc\r\n0\r\n\r\n", b"5\r\nabcde\r\n0\r\n\r\n"):
        parser = _parser(cache)
        assert parser.received(head) == len(head)
        assert parser.received(body) == len(body)
        assert parser.completed
        assert parser.error is None
        seen.append(parser.headers["CONTENT_LENGTH"])

    assert seen == ["3", "5"]
    assert all("CONTENT_LENGTH" not in remembered.head.headers for remembered in cache._entries.values())


@pytest.mark.parametrize(
    ("target", "raw_path", "query", "authority"),
    [
        ("/a?b?c", "/a", "b?c", ""), ("/a#f?x", "/a", "", ""), ("//evil/x", "//evil/x", "", ""),
        ("http://h:1/a?b", "/a", "b", "h:1"), ("http://h", "/", "", "h"), ("http://h?x", "/", "x", "h"),
        ("/x://y/z", "/x://y/z", "", ""), ("/%2e%2E/%78fer", "/%2e%2E/%78fer", "", ""),
    ],
)  # fmt: skip
def test_the_target_is_taken_apart_as_it_stands(
    cache: HeadCache, target: str, raw_path: str, query: str, authority: str
) -> None:
    """DESIGN §5: route from the raw request target, undecoded."""
    head = cache.parse(HEAD.replace(b"/a?b", target.encode())).head

    assert (head.raw_path, head.query, head.authority) == (raw_path, query, authority)


@pytest.mark.parametrize("target", [b"*", b"?x", b"mcp", b"localhost:80"])
def test_a_target_that_is_no_path_is_refused_where_a_route_might_take_it(cache: HeadCache, target: bytes) -> None:
    """RFC 9112 §3.2: the form of the target depends on the method."""
    with pytest.raises(ParsingError, match="Bad URI"):
        cache.parse(HEAD.replace(b"/a?b", target))
    for method in (b"OPTIONS", b"CONNECT"):
        head = cache.parse(HEAD.replace(b"POST", method).replace(b"/a?b", target)).head
        assert head.command not in route_for(head.raw_path).methods


@given(st.binary(max_size=300), st.integers(0, 300))
def test_no_bytes_make_the_parser_raise(data: bytes, cut: int) -> None:
    """Bad input: whatever comes, in two pieces: it is taken, refused with one of our errors, or waited on."""
    cache = HeadCache(Adjustments())
    for prefix in (b"", HEAD, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", HEAD + b"Content-Length: 7\r\n\r\n"):
        parser = _parser(cache)
        for piece in (prefix + data[:cut], data[cut:]):
            rest = piece
            while rest and not parser.completed:
                rest = rest[parser.received(rest) or len(rest) :]


def test_a_refused_request_takes_no_more() -> None:
    """Issue, HTTP edge: unauthenticated requests are refused when the head ends."""
    parser = _parser(HeadCache(Adjustments()))
    data = HEAD.replace(b" t\r", b" wrong\r") + b"Content-Length: 50\r\n\r\n"

    parser.received(data + b"x" * 10)

    assert parser.completed
    assert (parser.error is not None, getattr(parser.error, "status", 0)) == (True, 401)
    assert parser.body_rcv is None
    assert parser.received(b"more") == 0


def test_the_framing_limit_is_a_body_too_large() -> None:
    """Ours: Waitress's own 413 becomes ours."""
    parser = _parser(HeadCache(Adjustments()), body_bytes=1000, max_request_body_size=50)
    parser.received(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    parser.received(b"1\r\nx\r\n" * 20)

    assert isinstance(parser.error, BodyTooLarge)


@pytest.mark.parametrize("start", [b"\x16\x03\x01", b"GET / HTTP/1.1\n", b"\n", b"(", b"GET / HTTP/1.1\r\nX: y\n"])
def test_what_can_become_no_head_is_refused_without_waiting(start: bytes) -> None:
    """Row H12."""
    parser = _parser(HeadCache(Adjustments()))
    parser.received(start)

    assert isinstance(parser.error, InvalidRequest)


@pytest.mark.parametrize("start", [b"", b"\r", b"\r\n", b"P", b"POST / HTTP/1.1\r", b"POST / HTTP/1.1\r\n", b"\r\nGET"])
def test_what_may_become_a_head_is_waited_for(start: bytes) -> None:
    """Row H05, the good half."""
    parser = _parser(HeadCache(Adjustments()))
    parser.received(start)

    assert parser.error is None
    assert not parser.completed


@pytest.mark.parametrize("before", [b"", b"\r\n"], ids=["at once", "behind an empty line"])
@pytest.mark.parametrize("piece", [100, 3000, 100_000])
@pytest.mark.parametrize(("headers", "refused"), [(256, False), (257, True)])
def test_a_head_has_as_many_lines_as_it_may_have(before: bytes, piece: int, headers: int, refused: bool) -> None:
    """Row H04: however it comes; one that has more is refused wherever it would end, and a body has as many as it likes."""
    head = HEAD + b"X: y\r\n" * (headers - 3) + b"Content-Length: 900\r\n\r\n"
    data = before + head + b"a\r\n" * 300
    parser = _parser(HeadCache(Adjustments()), body_bytes=1000)
    for start in range(0, len(data), piece):
        if not parser.completed:
            parser.received(data[start : start + piece])

    assert head.count(b"\r\n") == headers + 2
    assert isinstance(parser.error, HeadersTooLarge) == refused
    assert parser.error is None or refused


def test_a_head_that_comes_byte_by_byte_costs_little() -> None:
    """Row H09: whoever has no token buys no time of the loop's with 30,000 tiny packets."""
    parser = _parser(HeadCache(Adjustments()))
    began = time.process_time()
    for byte in HEAD + b"X: " + b"y" * 30_000:
        parser.received(bytes((byte,)))

    assert parser.error is None
    assert time.process_time() - began < 3.0


# --- routes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "name"),
    [("/", "bridge"), ("", "bridge"), ("*", "bridge"), ("/xfer", "xfer"), ("/xfer/", "xfer"), ("/xfer/a/../b", "xfer"),
     ("/xferry", "bridge"), ("/Xfer", "bridge"), ("/xfer%2f", "bridge"), ("/host-llm", "host-llm"), ("/host-llm/", "bridge"),
     ("//xfer", "bridge"), ("/./xfer", "bridge"), ("/%78fer", "bridge")],
)  # fmt: skip
def test_paths_are_compared_as_they_stand(path: str, name: str) -> None:
    """Seed, "Transport": /xfer and below, /host-llm; the rest is the bridge's."""
    assert route_for(path).name == name
    assert {"POST"} <= route_for(path).methods
    assert BRIDGE not in RESERVED


# --- promises -----------------------------------------------------------------------------------------------------


class _Connection:
    def __init__(self) -> None:
        self.delivered: list[Response] = []

    def deliver(self, response: Response) -> None:
        self.delivered.append(response)

    def open_stream(self) -> None:
        raise AssertionError("not asked for")

    def push(self, data: bytes) -> None:
        raise AssertionError(data)

    def end_stream(self) -> None:
        raise AssertionError("not asked for")


ONE, TWO = Response(200, b"1"), Response(200, b"2")


@pytest.mark.parametrize("first", ["attach", "complete"])
def test_a_promise_is_kept_once_whatever_comes_first(first: str) -> None:
    """DESIGN §3: whoever completes it, before or after the connection is there."""
    parked, connection = Parked(), _Connection()
    if first == "attach":
        parked.attach(connection)
        assert not parked.done
    assert parked.complete(ONE) is True
    assert parked.done
    if first == "complete":
        assert connection.delivered == []
        parked.attach(connection)

    assert parked.complete(TWO) is False
    assert connection.delivered == [ONE]


def test_of_many_who_complete_at_once_one_is_the_first() -> None:
    """DESIGN §3: exactly one delivery, while threads complete and the loop attaches."""
    for _ in range(300):
        parked, connection = Parked(), _Connection()
        barrier = threading.Barrier(4)
        won: list[bool] = []

        def complete(parked: Parked = parked, barrier: threading.Barrier = barrier, won: list[bool] = won) -> None:
            barrier.wait()
            won.append(parked.complete(ONE))

        threads = [threading.Thread(target=complete) for _ in range(3)]
        for thread in threads:
            thread.start()
        barrier.wait()
        parked.attach(connection)
        for thread in threads:
            thread.join()

        assert sorted(won) == [False, False, True]
        assert connection.delivered == [ONE]


def test_a_promise_is_not_a_body() -> None:
    """Ours: a server that does not know it says so at once instead of sending nothing."""
    with pytest.raises(TypeError, match="attached"):
        iter(Parked())


# --- the poller ---------------------------------------------------------------------------------------------------


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two sockets that are connected."""
    left, right = socket.socketpair()
    yield left, right
    left.close()
    right.close()


def test_interest_is_told_once_and_can_be_changed(pair: tuple[socket.socket, socket.socket]) -> None:
    """PERF: the loop scans nothing."""
    poller = Poller()
    left, right = pair
    fds = SocketMap(poller)
    fds[left.fileno()] = object()
    assert list(poller.wait(0)) == []

    right.send(b"x")
    assert list(poller.wait(1)) == [(left.fileno(), select.POLLIN)]
    poller.want(left.fileno(), WRITE)
    assert list(poller.wait(1)) == [(left.fileno(), select.POLLOUT)]
    poller.want(left.fileno(), 0)
    assert list(poller.wait(0)) == []
    poller.want(left.fileno(), READ | WRITE)
    assert list(poller.wait(1)) == [(left.fileno(), select.POLLIN | select.POLLOUT)]

    poller.want(left.fileno(), 0)
    right.close()
    ((fd, event),) = poller.wait(1)
    assert fd == left.fileno()
    assert event & select.POLLHUP, "a hang-up is told to who watches for nothing"
    del fds[left.fileno()]
    assert list(poller.wait(0)) == []
    poller.close()


def test_more_than_a_thousand_are_told_at_once(pair: tuple[socket.socket, socket.socket]) -> None:
    """P4: by itself epoll tells 1,023, and who is passed over goes to the end of its list."""
    count, (soft, hard) = 1100, resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * count:
        pytest.skip("the limit on open files is too low here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * count), hard))
    poller, descriptors = Poller(), []
    try:
        descriptors += [os.dup(pair[0].fileno()) for _ in range(count)]
        for fd in descriptors:
            poller.add(fd)
        pair[1].send(b"x")
        assert {fd for fd, _ in poller.wait(1.0)} == set(descriptors)
    finally:
        poller.close()
        for fd in descriptors:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_descriptor_nobody_watches_is_no_error(pair: tuple[socket.socket, socket.socket]) -> None:
    """Ours: the loop settles connections that have just closed."""
    poller = Poller()
    poller.want(pair[0].fileno(), READ)
    poller.remove(pair[0].fileno())
    assert list(poller.wait(0)) == []
    poller.close()


# --- the listener -------------------------------------------------------------------------------------------------


def test_a_taken_port_gives_another_one_and_says_so() -> None:
    """Issue, HTTP edge: a busy port falls back to a free one."""
    first, as_asked = bind("127.0.0.1", 0)
    first.listen()
    second, again = bind("127.0.0.1", first.getsockname()[1])

    assert (as_asked, again) == (True, False)
    assert second.getsockname()[1] != first.getsockname()[1]
    first.close()
    second.close()


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_an_address_that_is_not_ours_is_an_error_with_a_hint(host: str) -> None:
    """Issue, exit code 4."""
    with pytest.raises(CannotListen, match=host) as caught:
        bind(host, 0)

    assert caught.value.exit_code == 4


def test_connections_are_as_many_as_the_machine_affords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 0 row 2: the cap is checked against the limit on descriptors, which is raised as far as allowed."""
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _what, limits: raised.append(limits))
    for limits, wanted, expected in (
        ((1024, 20_000), 4096, 4096),
        ((1024, 1024), 4096, 1024 - HEADROOM - 10 * PER_COMMAND),
        ((256, 256), 4096, 128),
        ((64, 64), 4096, 64 - LEAST),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 4096, 4096),
        ((20_000, 20_000), 100, 100),
    ):
        monkeypatch.setattr(resource, "getrlimit", lambda _what, limits=limits: limits)
        assert affordable_connections(wanted, commands=10) == expected

    assert raised == [(4096 + HEADROOM + 10 * PER_COMMAND, 20_000), (1024, 1024), (256, 256), (64, 64)]
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (LEAST, LEAST))
    with pytest.raises(SystemRefused, match=f"the limit on open files is {LEAST}"):
        affordable_connections(1, commands=10)


@pytest.mark.parametrize(
    ("does", "left"),
    [
        (lambda peer: None, False),
        (lambda peer: peer.send(b"P"), False),
        (lambda peer: peer.send(HEAD), False),
        (lambda peer: (peer.send(HEAD + b"\r\n"), peer.close()), False),
        (lambda peer: (peer.send(b"P"), peer.close()), True),
        (lambda peer: (peer.send(HEAD), peer.shutdown(socket.SHUT_WR)), True),
        (lambda peer: peer.close(), True),
        (lambda peer: peer.shutdown(socket.SHUT_WR), True),
        (lambda peer: (peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)), peer.close()), True),
    ],
    ids=["waits", "says a word", "says half", "asks and leaves", "leaves after a word", "ends its side after half",
         "leaves", "ends its side", "resets"],
)  # fmt: skip
def test_who_has_left_before_asking_is_not_taken_in(does: Any, left: bool) -> None:
    """Row Z05: a flood of these is let go of before anything is made for them, and nothing that was asked is lost."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        peer = socket.create_connection(listening.getsockname())
        does(peer)
        came, _ = listening.accept()
        with came, peer:
            if left:
                until(lambda: has_left(came), what="it has left")
            assert has_left(came) is left
