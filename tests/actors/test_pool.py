"""The pool of workers where the machine has no thread left, and where very many of them work."""

from __future__ import annotations

from typing import Any

import pykka
import pytest
from living import WAIT_S, Clock, Ear

from a2mcp.host import switchinterval
from actors import worker
from actors.kit import launch
from actors.pool import CROWD, Pool
from actors.ref import Message
from actors.worker import Worker


class Job(Message, frozen=True):
    number: int


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the start of a worker fail as it does when the machine has no thread left; called to end it."""

    def fail(_actor: Worker) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Worker, "_start_actor_loop", fail)
    return monkeypatch.undo


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level("CRITICAL")


def test_a_call_waits_until_there_is_a_thread_for_it(no_threads: Any) -> None:
    """Ours: RLIMIT_NPROC and the like; nothing is lost and nothing is left in Pykka's registry."""
    ear = Ear("Executor")
    registered = len(pykka.ActorRegistry.get_all())
    pool = Pool(clock=Clock(), run_calls=ear.ref)
    jobs: list[Any] = [Job(number) for number in range(3)]
    for job in jobs:
        pool.run(job)
    assert pool.tend() == []
    assert list(pool._waiting) == jobs
    assert len(pykka.ActorRegistry.get_all()) == registered

    no_threads()
    ran: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "receive", lambda _self, message: ran.append(message))
        assert pool.tend() == []
        for busy in pool._busy:
            busy.stop()
        for busy in pool._busy:
            busy.thread.join(WAIT_S)

    assert sorted(job.number for job in ran) == [0, 1, 2]


def test_an_actor_that_cannot_start_leaves_nothing_behind(no_threads: Any) -> None:
    """Ours: a start that fails raises and is forgotten."""
    registered = len(pykka.ActorRegistry.get_all())
    with pytest.raises(RuntimeError):
        launch(worker.Worker(Worker.mailbox_for("Worker"), run_calls=Ear.__new__(Ear)))  # type: ignore[arg-type]

    assert len(pykka.ActorRegistry.get_all()) == registered


def test_turns_are_short_while_very_many_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """P4: a hundred tools that compute made everybody else wait for all of them."""
    changes: list[int] = []
    monkeypatch.setattr(switchinterval, "change", changes.append)
    monkeypatch.setattr(Worker, "receive", lambda _self, _message: None)
    pool = Pool(clock=Clock(), run_calls=Ear("Executor").ref)

    for number in range(CROWD):
        pool.run(Job(number))  # type: ignore[arg-type]
    assert changes == []
    for number in range(3):
        pool.run(Job(number))  # type: ignore[arg-type]
    assert changes == [1]
    there = list(pool._busy)
    for worker_ in there:
        pool.free(worker_)
    assert changes == [1, -1]

    pool.stop()
