"""The thread of the turns: there while something runs, gone when nothing has for a while."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import pytest

from actors.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_S = 10.0


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def there() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "Turns"]


def never() -> None:
    raise AssertionError("it did begin")


def test_the_thread_comes_with_the_first_work_and_goes_when_there_is_none() -> None:
    """Source: brief: one thread, started lazily, never while idle."""
    turns = Turns(idle_s=0.05)
    assert there() == []
    release, names = threading.Event(), []

    async def work() -> None:
        names.append(threading.current_thread().name)
        while not release.is_set():  # noqa: ASYNC110  # What releases it is on another thread.
            await asyncio.sleep(0.002)

    for _ in range(3):
        turns.begin(work, never)
    until(lambda: len(names) == 3)
    assert (names, len(there())) == (["Turns"] * 3, 1)
    release.set()
    until(lambda: there() == [])

    turns.begin(work, never)
    until(lambda: len(names) == 4)
    until(lambda: there() == [])


def test_work_that_is_cancelled_sees_it_and_work_that_never_began_is_cut() -> None:
    """Ours: whatever becomes of it, whoever began it is told."""
    turns = Turns(idle_s=0.05)
    told: list[str] = []
    began = threading.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            told.append("cancelled")

    run = turns.begin(work, never)
    assert began.wait(WAIT_S)
    run.cancel()
    until(lambda: told == ["cancelled"])

    held, go = threading.Event(), threading.Event()

    async def hold() -> None:
        held.set()
        go.wait(WAIT_S)  # The loop stands still: what is begun and cancelled meanwhile never runs.

    turns.begin(hold, never)
    assert held.wait(WAIT_S)
    turns.begin(work, lambda: told.append("cut")).cancel()
    go.set()
    until(lambda: told == ["cancelled", "cut"])
    run.cancel()
    until(lambda: there() == [])
    run.cancel()


def test_a_machine_without_threads_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the turn ends with words, and the next one tries again."""
    turns = Turns(idle_s=0.01)

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def work() -> None:
        done.set()

    done = threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="thread"):
            turns.begin(work, never)
    turns.begin(work, never)
    assert done.wait(WAIT_S)
    until(lambda: there() == [])
