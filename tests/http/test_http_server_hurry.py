"""What must not be lost when threads of the server come and go: jobs behind one that hangs, and who has left."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from a2mcp.http.server.channel import Channel
from a2mcp.http.server.parked import Parked
from a2mcp.http.server.workers import Workers

WAIT_S = 20.0


def test_a_job_behind_one_that_hangs_gets_a_thread_of_its_own() -> None:
    """Ours: a file system that hangs holds one thread, not who comes a moment later."""
    workers = Workers("Test", threads=2)
    first, ran, released = threading.Event(), threading.Event(), threading.Event()
    workers.do(first.set)
    assert first.wait(WAIT_S)
    assert workers.settle(WAIT_S)

    workers.do(lambda: released.wait(WAIT_S))
    workers.do(ran.set)

    assert ran.wait(WAIT_S / 2)
    released.set()
    assert workers.settle(WAIT_S)


def test_a_machine_without_threads_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a thread that could not be started is not counted as one that works."""
    workers = Workers("Test", threads=1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", _refuse)
        workers.do(lambda: None)
    ran = threading.Event()

    workers.do(ran.set)

    assert ran.wait(WAIT_S)


def _refuse(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_who_left_while_another_thread_ran_the_app_is_told_of() -> None:
    """2026-07-28: closing cancels; also the call that was decoded elsewhere when its client closed."""
    left = threading.Event()
    parked = Parked()
    parked.when_gone(left.set)
    channel: Any = Channel.__new__(Channel)
    channel.connected = False
    channel.requests_lock = threading.Lock()
    channel.requests = [SimpleNamespace(error=None, environ={}, body_rcv=None, chunked=False, parked=None)]
    channel.server = SimpleNamespace(application=lambda _environ, _start: parked)

    channel.service()

    assert left.is_set()
