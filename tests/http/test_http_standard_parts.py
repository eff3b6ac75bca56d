"""Event streams: which ``Accept`` takes them, and a parked response that becomes one."""

from __future__ import annotations

import pytest

from a2mcp.http import sse
from a2mcp.http.server.parked import COMMENT_S, SLOW_S, Parked
from a2mcp.protocol.response import Response

ONE = Response(200, b"1")


class Line:
    """A connection that remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[object] = []

    def deliver(self, response: Response) -> None:
        self.said.append(response)

    def open_stream(self) -> None:
        self.said.append("open")

    def push(self, data: bytes) -> None:
        self.said.append(data)

    def end_stream(self) -> None:
        self.said.append("end")


def test_events_from_before_the_connection_are_sent_first_and_in_order() -> None:
    """Ours: a tool may be faster than the loop; what it said was lost once."""
    parked, line = Parked(streams=True), Line()
    assert parked.send(b"a")
    assert parked.send(b"b")
    parked.attach(line)
    assert parked.send(b"c")
    parked.complete(ONE)

    assert line.said == ["open", *map(sse.message, (b"a", b"b", b"c", b"1")), "end"]


def test_an_answer_from_before_the_connection_ends_the_stream_that_it_began() -> None:
    """Ours."""
    parked, line = Parked(streams=True), Line()
    parked.send(b"a")
    parked.complete(ONE)
    parked.attach(line)

    assert line.said == ["open", sse.message(b"a"), sse.message(b"1"), "end"]


def test_without_a_stream_nothing_is_said_before_the_answer() -> None:
    """Issue, section 4: JSON-only clients get the plain reply."""
    parked, line = Parked(), Line()
    parked.attach(line)
    assert not parked.begin_stream()
    assert not parked.send(b"a")
    parked.tend(parked._born + SLOW_S + 1)
    parked.complete(ONE)

    assert line.said == [ONE]


@pytest.mark.parametrize("status", [200, 400, 404, 503])
def test_who_takes_only_streams_gets_one_unless_the_status_says_more(status: int) -> None:
    """Error table: an error has its status, whatever the client accepts."""
    parked, line = Parked(streams=True, only_streams=True), Line()
    parked.attach(line)
    response = Response(status, b"1")
    parked.complete(response)

    assert line.said == (["open", sse.message(b"1"), "end"] if status == 200 else [response])


def test_a_slow_answer_becomes_a_stream_and_a_silent_stream_is_commented() -> None:
    """Issue, section 4: 10 s and 15 s."""
    parked, line = Parked(streams=True), Line()
    parked.attach(line)
    parked.tend(parked._born + SLOW_S - 0.1)
    assert line.said == []
    parked.tend(parked._born + SLOW_S)
    assert line.said == ["open", sse.COMMENT]
    parked.tend(parked._sent_at + COMMENT_S - 0.1)
    assert line.said == ["open", sse.COMMENT]
    parked.tend(parked._sent_at + COMMENT_S)
    assert line.said == ["open", sse.COMMENT, sse.COMMENT]
    parked.complete(ONE)
    parked.tend(parked._sent_at + COMMENT_S)
    assert line.said[3:] == [sse.message(b"1"), "end"]


def test_who_has_left_is_told_of_once_and_sent_nothing() -> None:
    """Specification, "cancellation": the server sends no more."""
    parked, line, told = Parked(streams=True), Line(), []
    parked.attach(line)
    parked.begin_stream()
    parked.when_gone(lambda: told.append(1))
    parked.gone()
    parked.gone()
    assert told == [1]
    assert not parked.send(b"a")
    assert line.said == ["open"]
    parked.when_gone(lambda: told.append(2))
    assert told == [1, 2]


def test_who_leaves_after_the_answer_is_not_told_of() -> None:
    """Ours."""
    parked, told = Parked(), []
    parked.when_gone(lambda: told.append(1))
    parked.complete(ONE)
    parked.gone()

    assert told == []


@pytest.mark.parametrize(
    ("accept", "takes", "only", "tolerates"),
    [
        (None, False, False, True),
        ("", False, False, True),
        ("*/*", False, False, True),
        ("application/json", False, False, False),
        ("text/event-stream", True, True, True),
        ("TEXT/Event-Stream", True, True, True),
        ("text/*", True, True, True),
        ("application/json, text/event-stream", True, False, True),
        ("text/event-stream;q=0.5 , application/json", True, False, True),
        ("text/event-stream, */*", True, False, True),
        ("text/event-stream;q=0, application/json", False, False, False),
        ("text/event-stream; q = 0", False, False, False),
        ("text/html", False, False, False),
        (",,;", False, False, False),
    ],
)
def test_accept_is_read_leniently(accept: str | None, takes: bool, only: bool, tolerates: bool) -> None:
    """Try-out 17."""
    assert (sse.accepted(accept), sse.only_streams(accept), sse.tolerated(accept)) == (takes, only, tolerates)
