"""Where one request ends and the next begins: whatever two parties could read differently is refused, and closed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
import wire
from harness import Daemon, until
from rows import row

if TYPE_CHECKING:
    from pathlib import Path

PING = wire.message("ping")


def _head(daemon: Daemon, *lines: str | bytes, first: str = "POST / HTTP/1.1") -> bytes:
    return wire.head(first, "Host: 127.0.0.1", f"Authorization: Bearer {daemon.token}", *lines)


def _refused(said: bytes, *statuses: int) -> None:
    """The socket said one error as JSON-RPC, that it closes, and closed."""
    answers = wire.split_answers(said)
    assert [answer.status in statuses for answer in answers] == [True], said
    answer = answers[0]
    assert answer.headers["connection"] == "close"
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json) == {"jsonrpc", "id", "error"}
    for leaked in ("Traceback", "waitress", "falcon", ".py", "python"):
        assert leaked not in said.decode("latin-1").lower()


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 40", "Content-Length: 40"], ["Content-Length: 40", "Content-Length: 41"], ["Content-Length: +3"],
        ["Content-Length: -1"], ["Content-Length: 0x3"], ["Content-Length: 1_0"], ["Content-Length: \xd9\xa3"],
        ["Content-Length:"], ["Content-Length: 3 4"], ["Content-Length: 3,3"], ["Content-Length: " + "9" * 40],
        ["Content-Length: " + "1" * 5000], ["Content-Length: " + "0" * 5000], ["content-length : 3"], ["Content-Length: 3\x0b"],
    ],
    ids=row("H02"),
)  # fmt: skip
def test_a_length_that_is_not_one_number_is_refused(shared_daemon: Daemon, lines: list[str]) -> None:
    """Row H02: 400 or 413 and close; 5,000 digits leave no traceback."""
    _refused(shared_daemon.raw(_head(shared_daemon, *lines) + PING * 2), 400, 413)


@pytest.mark.parametrize(
    "lines",
    [
        ["Transfer-Encoding: xchunked"], ["Transfer-Encoding: gzip, chunked"], ["Transfer-Encoding: chunked, identity"],
        ["Transfer-Encoding: \x0bchunked"], ["Transfer-Encoding : chunked"], ["Transfer-Encoding: chunked, chunked"],
        ["Transfer-Encoding:"], ["Transfer-Encoding: ,"], ["Transfer-Encoding: identity"], ["Transfer-Encoding: \x85chunked"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], ["Transfer-Encoding: chunked", "Content-Length: 5"],
        ["Content-Length: 5", "Transfer-Encoding: chunked"], ["Transfer-Encoding: identity", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked;q=1"], ['Transfer-Encoding: "chunked"'], ["Transfer-Encoding: chunked\x00"],
    ],
    ids=row("H03"),
)  # fmt: skip
def test_a_coding_other_than_chunked_is_refused(shared_daemon: Daemon, lines: list[str]) -> None:
    """Row H03: 4xx or 501 and close, and what follows is not read as a request."""
    smuggled = wire.post(wire.INITIALIZE, shared_daemon.token)

    _refused(shared_daemon.raw(_head(shared_daemon, *lines) + wire.chunked(PING) + smuggled), 400, 501)


def test_chunks_are_not_of_http_1_0(shared_daemon: Daemon) -> None:
    """Row H03: with keep-alive the body would be read as the next request."""
    head = _head(shared_daemon, "Transfer-Encoding: chunked", "Connection: keep-alive", first="POST / HTTP/1.0")

    _refused(shared_daemon.raw(head + wire.chunked(PING)), 400)


@pytest.mark.parametrize(
    "body",
    [
        b"+3\r\nabc\r\n0\r\n\r\n", b"0x3\r\nabc\r\n0\r\n\r\n", b"3;a\n=b\r\nabc\r\n0\r\n\r\n", b"3 \r\nabc\r\n0\r\n\r\n",
        b" 3\r\nabc\r\n0\r\n\r\n", b"-1\r\nabc\r\n0\r\n\r\n", b"3\r\nabcd\r\n0\r\n\r\n", b"g\r\nabc\r\n0\r\n\r\n",
        b"1_0\r\nabc\r\n0\r\n\r\n", b"3;" + b"x" * 200_000 + b"\r\nabc\r\n0\r\n\r\n", b"0\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
        b"3" * 5000,
    ],
    ids=row("H03"),
)  # fmt: skip
def test_a_chunk_that_is_not_well_formed_is_refused(shared_daemon: Daemon, body: bytes) -> None:
    """Row H03: sizes with sign or prefix, extension with LF, endless lines and trailers."""
    _refused(shared_daemon.raw(_head(shared_daemon, "Transfer-Encoding: chunked") + body), 400)


def test_a_chunked_body_is_a_body(shared_daemon: Daemon) -> None:
    """Row H03, the good half: pieces of any size, extensions and trailers, in upper and lower case, twice on a line."""
    client = shared_daemon.session()
    head = _head(shared_daemon, "Transfer-Encoding: Chunked", f"mcp-session-id: {client.session}")
    bodies = [
        wire.chunked(*(PING[i : i + 1] for i in range(len(PING)))),
        b'%X;ext=1;more="x"\r\n%b\r\n000\r\n\r\n' % (len(PING), PING),
        b"%x\r\n%b\r\n0\r\nX-Trailer: 1\r\n\r\n" % (len(PING), PING),
    ]

    with wire.Line(shared_daemon.port) as line:
        line.send(b"".join(head + body for body in bodies) * 2)
        assert [answer.result for answer in line.answers(6)] == [{}] * 6


@pytest.mark.parametrize(
    "data",
    [
        b"POST / HTTP/1.1\nHost: 127.0.0.1\n\n", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\nX: y\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\rb\r\n\r\n", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\x00b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX\x00: a\r\n\r\n", b"POST /\x00 HTTP/1.1\r\nX: a\r\n\r\n",
        b"POST / HTTP/1.1\r\n X: y\r\nHost: 127.0.0.1\r\n\r\n", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: y\r\n\tz\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nno colon\r\n\r\n", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n: empty\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX y: z\r\n\r\n", b"POST / HTTP/1.1\rHost: 127.0.0.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\n\r\n\r\n",
    ],
    ids=row("H04"),
)  # fmt: skip
def test_line_ends_and_folds_that_are_not_http_are_refused(shared_daemon: Daemon, data: bytes) -> None:
    """Row H04: bare LF, bare CR, NUL, obs-fold."""
    _refused(shared_daemon.raw(data), 400)


def test_an_error_never_quotes_a_header(shared_daemon: Daemon) -> None:
    """Rows H04, H11 and H14: what a script made somebody's client send must not come back as text."""
    said = shared_daemon.raw(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer SECRET\nX: y\r\n\r\n")

    _refused(said, 400)
    assert b"SECRET" not in said


def test_a_folded_header_yields_no_token(shared_daemon: Daemon) -> None:
    """Row H04: obs-fold must not make a valid token."""
    token = shared_daemon.token
    for value in (f"Bearer\r\n {token}", f"\r\n Bearer {token}", f"Bearer {token[:9]}\r\n\t{token[9:]}"):
        _refused(shared_daemon.raw(wire.post(wire.INITIALIZE, None, f"Authorization: {value}")), 400)


@pytest.mark.parametrize(
    "lines",
    [["X: y"] * 10_000, ["X: " + "y" * 33 * 1024], ["X: " + "y" * 300_000], ["x" * 300_000 + ": y"]],
    ids=["H04 10k headers", "H04 33 KiB", "H04 300 KB", "H04 300 KB name"],
)
def test_too_much_header_is_431(shared_daemon: Daemon, lines: list[str]) -> None:
    """Row H04: and the refusal is read although the client was still sending."""
    _refused(shared_daemon.raw(_head(shared_daemon, *lines)), 431)


def test_too_many_lines_are_refused_before_the_end_of_the_head(shared_daemon: Daemon) -> None:
    """Row H04: nobody waits, or looks, for the end of what is too long already; one line less is waited for."""
    head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 254
    with wire.Line(shared_daemon.port) as line:
        line.send(head)
        assert line.silent(0.2)
        line.send(b"Authorization: Bearer x\r\n\r\n")
        assert line.answer().status == 401

    _refused(shared_daemon.raw(head + b"X: y\r\n" * 2 + b"X"), 431)
    _refused(shared_daemon.raw(head[:-6] + b"X: y\n" + b"X: y\r\n" * 300), 400)


def test_a_long_target_is_431_and_one_below_the_limit_is_served(shared_daemon: Daemon) -> None:
    """Row H04, its edge."""
    _refused(shared_daemon.raw(_head(shared_daemon, first=f"POST /{'x' * 40_000} HTTP/1.1")), 431)

    with wire.Line(shared_daemon.port) as line:
        line.send(wire.post(wire.INITIALIZE, shared_daemon.token, path=f"/{'x' * 30_000}"))
        assert line.answer().status == 200


@pytest.mark.parametrize(
    "bad",
    [
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\n", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=["H05 400", "H05 405", "H05 no Host", "H05 401"],
)  # fmt: skip
def test_nothing_behind_a_refused_request_is_served(shared_daemon: Daemon, tmp_path: Path, bad: bytes) -> None:
    """Row H05: [bad request][tools/call write] in one segment and split at places: the file is never written."""
    client = shared_daemon.session()
    target = tmp_path / "smuggled"
    good = wire.post(wire.call("write", path=str(target), content="x"), shared_daemon.token, session=client.session)
    data = bad + good
    cuts = sorted({len(bad), len(bad) - 1, *random.Random(5).sample(range(1, len(data)), 12)})

    for cut in (len(data), *cuts):
        with wire.Line(shared_daemon.port) as line:
            try:
                wire.dribble(line.socket, [data[:cut], data[cut:]], 0.002)
                assert line.answer().status in (400, 401, 405)
                assert line.ended()
            except ConnectionError:
                pass  # Closed before the second piece: just as well.

    assert client.ask("ping").result == {}
    assert not target.exists()
    assert [record for record in shared_daemon.audit() if record["sid"] == client.session] == []


def test_pipelined_requests_are_answered_in_order(shared_daemon: Daemon) -> None:
    """Row H06: initialize, ping, 500 pings on one socket."""
    session = shared_daemon.session().session
    token = shared_daemon.token
    data = wire.post(wire.INITIALIZE, token) + b"".join(
        wire.post(wire.message("ping", number), token, session=session) for number in range(501)
    )

    with wire.Line(shared_daemon.port) as line:
        line.send(data)
        answers = line.answers(502)

    assert answers[0].headers["mcp-session-id"]
    assert [answer.json["id"] for answer in answers[1:]] == list(range(501))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("HEAD / HTTP/1.1", 405), ("OPTIONS / HTTP/1.1", 405), ("OPTIONS * HTTP/1.1", 405), ("TRACE / HTTP/1.1", 405),
        ("CONNECT 127.0.0.1:80 HTTP/1.1", 405), ("FOO / HTTP/1.1", 405), ("PUT / HTTP/1.1", 405), ("GET / HTTP/1.1", 405),
        ("post / HTTP/1.1", 400), ("Post / HTTP/1.1", 400), ("POST  / HTTP/1.1", 400), ("POST / HTTP/1.1 x", 400),
        ("POST / http/1.1", 400), ("POST / HTTP/1.10", 400), ("POST /  HTTP/1.1", 400), ("POST HTTP/1.1", 400), ("POST", 400),
        ("POST / HTTP/2.0", 400), ("POST / HTTP/0.9", 400), ("POST /", 400), ("GET /", 400), ("P(ST / HTTP/1.1", 400),
        ("POST http://[::1/ HTTP/1.1", 400), ("POST http://[x]/ HTTP/1.1", 400), ("PRI * HTTP/2.0", 400),
        ("POST mcp HTTP/1.1", 400), ("POST * HTTP/1.1", 400), ("POST 127.0.0.1:80 HTTP/1.1", 400),
        ("DELETE http:/mcp HTTP/1.1", 400), ("POST http:///mcp HTTP/1.1", 400), ("GET mcp HTTP/1.1", 400),
    ],
    ids=row("H11"),
)  # fmt: skip
def test_odd_request_lines_have_an_answer(shared_daemon: Daemon, data: str, expected: int) -> None:
    """Row H11: 405 with an empty body, 400 where the line is none; Authorization and CORS never come back."""
    said = shared_daemon.raw(_head(shared_daemon, "X-Mark: here", first=data))

    assert said.startswith(b"HTTP/1.1 %d " % expected), said
    assert (b"\r\nContent-Length: 0\r\n" in said) is (expected == 405)
    for never in (shared_daemon.token.encode(), b"X-Mark", b"Access-Control"):
        assert never not in said


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)), b"\x16\x03\x01", b"\x00", b"\x80\x2e\x01\x00\x02",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"PROXY TCP4 1.2.3.4 127.0.0.1 5 6\r\nPOST / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c", b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b'{"jsonrpc":"2.0"}\n', b"\xff" * 100,
        b"\n\n\n\n", b"EHLO x\r\n\r\n",
    ],
    ids=row("H12"),
)  # fmt: skip
def test_other_protocols_get_400_at_once(shared_daemon: Daemon, data: bytes) -> None:
    """Row H12: TLS hello, PROXY, HTTP/2 preface, others; not left to the deadline."""
    _refused(shared_daemon.raw(data, seconds=3), 400)


def test_http_1_0_is_served_and_closed_unless_it_says_keep_alive(shared_daemon: Daemon) -> None:
    """Row H12: HTTP/1.0, with a Host or none."""
    body = wire.INITIALIZE
    usual = [f"Authorization: Bearer {shared_daemon.token}", f"Content-Length: {len(body)}"]

    plain = shared_daemon.raw(wire.head("POST / HTTP/1.0", *usual) + body)
    with wire.Line(shared_daemon.port) as line:
        line.send((wire.head("POST / HTTP/1.0", *usual, "Connection: Keep-Alive") + body) * 2)
        kept = line.answers(2)

    assert wire.statuses(plain) == [200]
    assert [(answer.status, answer.headers["connection"]) for answer in kept] == [(200, "keep-alive")] * 2


def test_an_upgrade_is_not_taken(shared_daemon: Daemon) -> None:
    """Row H12: a WebSocket or h2c upgrade is a plain request."""
    wish = [
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    ]

    assert wire.statuses(shared_daemon.raw(_head(shared_daemon, *wish, first="GET / HTTP/1.1"))) == [405]
    with wire.Line(shared_daemon.port) as line:
        line.send(
            wire.post(wire.INITIALIZE, shared_daemon.token, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c")
        )
        assert line.answer().status == 200


def test_empty_lines_before_a_request_are_skipped(shared_daemon: Daemon) -> None:
    """Row H04, the good half: a client may send CRLF after a body (RFC 9112 §2.2)."""
    with wire.Line(shared_daemon.port) as line:
        line.send((b"\r\n\r\n" + wire.post(wire.INITIALIZE, shared_daemon.token)) * 3)
        assert [answer.status for answer in line.answers(3)] == [200] * 3


def test_a_request_is_understood_however_it_is_cut(shared_daemon: Daemon) -> None:
    """Row H05, the good half: two requests split at every byte."""
    session = shared_daemon.session().session
    pair = b"".join(wire.post(wire.message("ping", n), shared_daemon.token, session=session) for n in (1, 2))

    with wire.Line(shared_daemon.port) as line:
        for cut in range(1, len(pair)):
            wire.dribble(line.socket, [pair[:cut], pair[cut:]], 0.0005)
            assert [answer.json["id"] for answer in line.answers(2)] == [1, 2], cut


def test_sockets_of_refused_requests_are_given_back(shared_daemon: Daemon) -> None:
    """Section 3, "alive": descriptors back within 3, whatever was refused."""
    before = shared_daemon.descriptors

    for _ in range(30):
        shared_daemon.raw(b"\x16\x03\x01\n")
        shared_daemon.raw(_head(shared_daemon, "Content-Length: x") + b"y" * 100_000)

    until(lambda: shared_daemon.descriptors <= before + 3, what="descriptors given back")
