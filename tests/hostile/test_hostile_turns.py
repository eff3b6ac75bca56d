"""Turns: what one client sends ahead, or in crumbs, is looked at a little at a time, so that the next one is served."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import wire
from edge import SESSION, TOKEN, edge
from harness import until

if TYPE_CHECKING:
    from harness import Daemon

ENOUGH = 300
"""Requests of others that may be served between a request's coming and its answer; all of them are ten thousand."""


def _now(request_id: int) -> bytes:
    return wire.post(wire.message("tools/call", request_id, {"name": "now"}), TOKEN, session=SESSION)


def test_what_was_sent_ahead_does_not_go_before_what_comes() -> None:
    """P4, row H06: a read held hundreds of requests, and all of them were answered first."""
    with edge() as served:
        greedy = [wire.Line(served.port) for _ in range(8)]
        with wire.Line(served.port) as modest:
            modest.send(_now(0))
            modest.answer()
            for line in greedy:
                line.socket.setblocking(False)
                line.socket.send(b"".join(_now(number) for number in range(1, 1300)))
            until(lambda: len(served.front.called) > 200, what="the greedy ones are served")
            before = len(served.front.called)
            modest.send(_now(-1))
            modest.answer()
            place = next(at for at, (name, _) in enumerate(served.front.called) if name == b"-1")
        for line in greedy:
            line.socket.close()

    assert place - before < ENOUGH


def test_a_body_in_crumbs_is_read_in_turns() -> None:
    """P4, row H03: 64 KiB in chunks of a byte took a tenth of a second, eight of them nearly one."""
    crumbs = b"1\r\n \r\n" * 12_000
    with edge() as served:
        there = [wire.Line(served.port) for _ in range(16)]
        for line in there:
            head = wire.head("POST / HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {TOKEN}")
            line.socket.setblocking(False)
            line.socket.send(head[:-2] + b"Transfer-Encoding: chunked\r\n\r\n" + crumbs)
        waits = []
        with wire.Line(served.port) as modest:
            for number in range(10):
                began = time.monotonic()
                modest.send(_now(number))
                modest.answer()
                waits.append(time.monotonic() - began)
        for line in there:
            line.socket.close()

    assert min(waits) < 0.1
    assert max(waits) < 1.0


def test_a_body_in_crumbs_is_read_to_its_end() -> None:
    """Row H03, the good half: what waits for its turn gets it, also behind a slow call and across the end of a body."""
    body = wire.message("tools/call", 2, {"name": "now", "arguments": "x" * 3000})
    head = wire.head(
        "POST / HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {TOKEN}", f"mcp-session-id: {SESSION}",
        "Transfer-Encoding: chunked",
    )  # fmt: skip
    crumbled = head + wire.chunked(*(body[at : at + 1] for at in range(len(body))))
    hold = wire.post(wire.message("tools/call", 1, {"name": "hold"}), TOKEN, session=SESSION)
    with edge() as served, wire.Line(served.port) as line:
        line.send(hold + crumbled * 3 + _now(3))
        served.front.wait_for(b"1")
        assert line.silent(0.1)
        served.front.release(b"1")
        assert [answer.json["id"] for answer in line.answers(5)] == [1, 2, 2, 2, 3]


def test_a_head_of_many_lines_is_refused_and_one_below_the_limit_is_served(victim: Daemon) -> None:
    """P4, row H04: each line costs time before the token is looked at; 256 of them are taken."""
    usual = ["Host: 127.0.0.1", f"Authorization: Bearer {victim.token}", f"Content-Length: {len(wire.INITIALIZE)}"]
    for lines, status in ((252, 200), (253, 431), (6000, 431)):
        said = victim.raw(wire.head("POST / HTTP/1.1", *usual, "Connection: close", *["a:b"] * lines) + wire.INITIALIZE)
        assert wire.statuses(said) == [status], lines


def test_a_body_of_very_many_values_is_refused_in_no_time(victim: Daemon) -> None:
    """P4, row J10: 30 MB of empty objects took three seconds in which nobody was answered, and a gigabyte."""
    client, other = victim.session(), victim.session()
    arguments = b'{"path":[' + b"{}," * (10 << 20) + b"{}]}"
    for method, status in (("tools/call", 413), ("ping", 413), ("nothing", 413)):
        body = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":{"name":"read","arguments":%b}}'
        began = time.monotonic()
        answer = client.post(body % (method.encode(), arguments))
        assert (answer.status, answer.error["code"]) == (status, -32700)
        assert time.monotonic() - began < 5
        assert other.ask("ping").result == {}
    assert not [record for record in victim.audit() if record["sid"] == client.session]
