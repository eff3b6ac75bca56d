"""Bodies: their limit to the byte, refused before they are read where that can be known, and Expect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import wire
from edge import SESSION, TOKEN, edge
from harness import Daemon, running, until
from rows import row

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 4096
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that takes bodies of 4 KiB."""
    with running(tmp_path_factory.mktemp("small") / "home", settings={"limits": {"body_bytes": LIMIT}}) as daemon:
        yield daemon


def _ping_of(size: int) -> bytes:
    body = wire.message("initialize", params={"pad": ""})
    return body.replace(b'"pad": ""', b'"pad": "%b"' % (b"x" * (size - len(body))))


def _chunked_head(token: str, *lines: str) -> bytes:
    return wire.head(
        "POST / HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}", "Transfer-Encoding: chunked", *lines
    )


def _too_large(said: bytes) -> bool:
    (answer,) = wire.split_answers(said)
    return answer.status == 413 and answer.error["code"] == -32700 and answer.headers["connection"] == "close"


def test_the_limit_itself_is_taken_and_one_more_byte_is_not(victim: Daemon) -> None:
    """Seed, "Transport" (传输), POST: a cap on the body; ours: exact, 413 and -32700."""
    with wire.Line(victim.port) as line:
        line.send(wire.post(_ping_of(LIMIT), victim.token))
        assert line.answer().status == 200

    assert _too_large(victim.raw(wire.post(_ping_of(LIMIT + 1), victim.token)))
    assert _too_large(victim.raw(wire.post(b"", victim.token).replace(b"Length: 0", b"Length: %d" % (10**17))))


@pytest.mark.parametrize("piece", [LIMIT, 1000, 7, 1], ids=row("H03"))
def test_the_limit_counts_the_body_of_chunks_and_not_their_framing(victim: Daemon, piece: int) -> None:
    """Ours: a chunked body of exactly the limit is taken in pieces of any size; one more byte is 413."""
    for size, taken in ((LIMIT, True), (LIMIT + 1, False)):
        body = _ping_of(size)
        data = wire.chunked(*(body[at : at + piece] for at in range(0, size, piece)))
        with wire.Line(victim.port) as line:
            line.send(_chunked_head(victim.token) + data)
            assert line.answer().status == (200 if taken else 413)


def test_endless_chunks_are_cut_at_the_limit(victim: Daemon) -> None:
    """Row H03: a chunk of ffffffffffffffff bytes ends at the limit, not at the deadline."""
    assert _too_large(victim.raw(_chunked_head(victim.token) + b"ffffffffffffffff\r\n" + b"x" * 50_000))
    assert _too_large(
        victim.raw(_chunked_head(victim.token) + b"1;" + b"x" * 500 + b"\r\ny\r\n" + b"1\r\nx\r\n" * 5000)
    )


def test_framing_alone_cannot_grow_without_end(victim: Daemon) -> None:
    """Ours: a megabyte of chunk framing around a tiny body is 413, not 500 or 400."""
    assert _too_large(victim.raw(_chunked_head(victim.token) + (b"1;" + b"x" * 1000 + b"\r\ny\r\n") * 1100))


def test_a_body_nobody_may_send_is_refused_when_its_head_ends(victim: Daemon) -> None:
    """Row H08: 100 MB promised without a token: 401 before a byte of it, and nothing is kept on disk."""
    promise = wire.head("POST / HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {100 * 1024 * 1024}")

    with wire.Line(victim.port) as line:
        line.send(promise)
        answer = line.answer()
        held = [
            str(entry.readlink()) for entry in Path(f"/proc/{victim.process.pid}/fd").iterdir() if entry.is_symlink()
        ]

    assert (answer.status, answer.headers["connection"]) == (401, "close")
    assert not [name for name in held if "(deleted)" in name]


@pytest.mark.parametrize("sent", [0, 100_000, 5_000_000], ids=row("H08"))
def test_the_refusal_is_read_by_a_client_that_goes_on_sending(victim: Daemon, sent: int) -> None:
    """Ours: closing over unread bytes would reset the connection and destroy the answer."""
    head = wire.head("POST / HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {100 * 1024 * 1024}")

    said = victim.raw(head + b"x" * sent)

    # Whoever sends more than we are willing to throw away may be reset.
    assert wire.statuses(said) == [401] or sent > 1_000_000


def test_expect_is_answered_before_the_body_only_when_it_will_be_read(victim: Daemon) -> None:
    """Row H08: 100-continue with a bad token gets its 401 at once; with a good one 100, then the answer."""
    body = wire.INITIALIZE
    for token, expected in ((None, b"HTTP/1.1 401 "), ("wrong", b"HTTP/1.1 401 "), (victim.token, CONTINUE)):
        with wire.Line(victim.port) as line:
            head = wire.post(body, token, "Expect: 100-continue")[: -len(body)]
            line.send(head)
            assert line.socket.recv(len(expected)) == expected
            if token == victim.token:
                line.send(body)
                assert line.answer().status == 200

    large = wire.post(b"", victim.token, "Expect: 100-continue").replace(b"Length: 0", b"Length: 5000")
    assert _too_large(victim.raw(large))


def test_expect_with_the_body_right_behind_or_with_none_is_answered(victim: Daemon) -> None:
    """Ours: no body was announced, so there is none to wait for."""
    with wire.Line(victim.port) as line:
        line.send(wire.post(b"", victim.token, "Expect: 100-continue"))
        assert (line.answer().status, True) == (400, True)

    said = victim.raw(wire.post(wire.INITIALIZE, victim.token, "Expect: 100-continue", "Connection: close"))
    assert said.removeprefix(CONTINUE).startswith(b"HTTP/1.1 200 ")


def test_expect_behind_a_call_that_waits_gets_its_turn() -> None:
    """Ours: 100 comes when the responses before it are out, and without the client sending more."""
    body = wire.message("ping", 2)
    with edge() as served, wire.Line(served.port) as line:
        line.send(wire.post(wire.message("tools/call", 1, {"name": "hold"}), TOKEN, session=SESSION))
        line.send(wire.post(body, TOKEN, "Expect: 100-continue", session=SESSION)[: -len(body)])
        served.front.wait_for(b"1")
        assert line.silent(0.1)
        served.front.release(b"1")

        assert line.answer().json["id"] == 1
        assert line.answer().status == 100
        line.send(body)
        assert line.answer().json["id"] == 2


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 524_288, 3_000_000])
def test_bodies_on_both_sides_of_every_buffer_are_read_whole(size: int) -> None:
    """Ours: 64 KiB is where decoding leaves the loop, 512 KiB where the body goes to a file."""
    argument = json.dumps("x" * size).encode()
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"now","arguments":%b}}' % argument
    with edge(body_bytes=4 << 20) as served, wire.Line(served.port) as line:
        head = wire.head(
            "POST / HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {TOKEN}", "Transfer-Encoding: chunked",
            f"mcp-session-id: {SESSION}",
        )  # fmt: skip
        line.send(wire.post(body, TOKEN, session=SESSION) + head + wire.chunked(body[:70_000], body[70_000:] or b" "))
        answers = line.answers(2)

    assert [answer.status for answer in answers] == [200, 200]
    assert served.front.called == [(b"1", len(argument))] * 2


@pytest.mark.parametrize(
    "lines",
    [["Content-Type: text/plain"], ["Content-Type: application/x-www-form-urlencoded"], ["Content-Type: application/json; charset=utf-16"],
     ["Content-Type: multipart/form-data; boundary=x"], ["Content-Type:"], []],
    ids=row("J08"),
)  # fmt: skip
def test_the_content_type_is_not_looked_at(victim: Daemon, lines: list[str]) -> None:
    """Row J08: absent or another, the body is JSON."""
    with wire.Line(victim.port) as line:
        line.send(wire.post(wire.INITIALIZE, victim.token, *lines))
        assert line.answer().status == 200


def test_a_compressed_body_is_never_inflated(tmp_path: Path) -> None:
    """Row J08: a gzip bomb is just bytes that are no JSON."""
    import gzip

    bomb = gzip.compress(b"[" * 50_000_000)
    with running(tmp_path / "home") as daemon:
        before = daemon.rss_mb
        for encoding in ("gzip", "deflate", "br"):
            said = daemon.raw(wire.post(bomb, daemon.token, f"Content-Encoding: {encoding}", "Connection: close"))
            (answer,) = wire.split_answers(said)
            assert (answer.status, answer.error["code"]) == (400, -32700)
        assert daemon.rss_mb < before + 10


def test_a_body_that_never_comes_whole_leaves_nothing(victim: Daemon) -> None:
    """Bad input: half-sent requests and resets; descriptors back within 3."""
    before = victim.descriptors
    half: list[Any] = [wire.Line(victim.port) for _ in range(20)]
    for line in half:
        line.send(wire.post(b"x" * 2000, victim.token)[:-1000])
    for number, line in enumerate(half):
        if number % 2:
            line.socket.setsockopt(1, 13, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # SO_LINGER 0: reset
        line.socket.close()

    until(lambda: victim.descriptors <= before + 3, what="descriptors given back")
