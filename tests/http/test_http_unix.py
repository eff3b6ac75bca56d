"""The server of the operator's channel by itself."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest
from harness import until

from a2mcp.http.server.unix import THREADS, OperatorServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Busy]:
    """A server whose threads all answer something, and one more question behind them."""
    made = Busy(tmp_path / "sock")
    yield made
    made.end()


class Busy:
    """A server that is asked more than it has threads for.

    Args:
        path: of its socket.
    """

    def __init__(self, path: Path) -> None:
        self.go = threading.Event()
        self._counting = threading.Lock()
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(path))
        self.server = OperatorServer(self._app, bound)
        self.server.start()
        self.being_answered = 0
        self.asked = [_ask(path) for _ in range(THREADS)]
        until(lambda: self.being_answered == THREADS, what="as many questions as can be answered at once")
        self.asked.append(_ask(path))
        until(lambda: self.server._server.task_dispatcher.queue, what="a question that waits")

    def _app(self, _environ: Any, start_response: Any) -> list[bytes]:
        with self._counting:
            self.being_answered += 1
        assert self.go.wait(20)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]

    def end(self) -> None:
        """Answer, and leave nothing open."""
        self.go.set()
        for each in self.asked:
            each.close()
        self.server.stop()


def test_questions_that_wait_for_their_turn_are_answered_and_nothing_is_said(
    busy: Busy, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours: three terminals at once are no reason to write to the daemon's stderr."""
    busy.go.set()

    for each in busy.asked:
        with each.makefile("rb") as answer:
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
    assert caplog.records == []


def test_an_end_while_questions_are_still_answered_says_nothing(busy: Busy, caplog: pytest.LogCaptureFixture) -> None:
    """Ours: an answer that comes after all wakes the loop, whose descriptors must not be somebody else's by then."""
    busy.server.stop()
    busy.go.set()

    for each in busy.asked[:THREADS]:
        with each.makefile("rb") as answer:
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
    until(lambda: not busy.server._server.task_dispatcher.threads, what="the end of the threads")
    assert caplog.records == []


def _ask(path: Path) -> socket.socket:
    asking = socket.socket(socket.AF_UNIX)
    asking.settimeout(20)
    asking.connect(str(path))
    asking.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return asking
