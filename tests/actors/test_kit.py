"""The rim, the bounded mailbox and the refs: what every actor here is made of."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, ClassVar

import pykka
import pytest
from living import WAIT_S, Poison

from a2mcp.errors import A2mcpError, Busy, Internal
from actors.kit import Actor, halt, launch
from actors.ref import Ask, Mailbox, Message, Ping, Ref, WakeableMailbox


class Do(Message, frozen=True):
    action: Any
    failures: list[A2mcpError]
    over: threading.Event

    def failed(self, error: A2mcpError) -> None:
        self.failures.append(error)
        self.over.set()


class Question(Ask[str], frozen=True):
    action: Any


class Doer(Actor[Any]):
    MAILBOX: ClassVar[int] = 3

    def receive(self, message: Any) -> Any:
        result = message.action()
        if isinstance(message, Do):
            message.over.set()
        return result


def doing(action: Any) -> Do:
    return Do(action, [], threading.Event())


def wait(message: Do) -> list[A2mcpError]:
    assert message.over.wait(WAIT_S)
    return message.failures


def throw(cause: BaseException) -> Any:
    def action() -> None:
        raise cause

    return action


def recurse() -> None:
    recurse()


class Held:
    """An actor that is busy until let go."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.actor = Doer(mailbox)
        self.ref: Ref[Any] = launch(self.actor)
        self._entered, self._go = threading.Event(), threading.Event()
        self.message = doing(self._wait)
        self.ref.tell(self.message)
        assert self._entered.wait(WAIT_S)

    def _wait(self) -> None:
        self._entered.set()
        assert self._go.wait(WAIT_S)

    def let_go(self) -> None:
        self._go.set()
        wait(self.message)


@pytest.fixture
def doer() -> Doer:
    actor = Doer(Doer.mailbox_for("Doer"))
    launch(actor)
    return actor


@pytest.mark.parametrize("action", [throw(ValueError("secret")), throw(MemoryError()), recurse, throw(KeyError(1))])
def test_an_exception_costs_its_own_message_and_nothing_else(
    doer: Doer, action: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue, "Actors": a rim that turns any exception and RecursionError into a completed exchange."""
    ref: Ref[Any] = Ref(doer.mailbox)
    broken, after = doing(action), doing(lambda: None)

    with caplog.at_level(logging.CRITICAL):
        ref.tell(broken)
        ref.tell(after)

    assert [type(error) for error in wait(broken)] == [Internal]
    assert wait(after) == []
    assert doer.alive()


def test_an_error_of_ours_reaches_whoever_waits_as_it_is(doer: Doer) -> None:
    """Ours: only what we have no words for becomes "internal error"."""
    broken = doing(throw(Busy("full", hint="wait")))
    Ref[Any](doer.mailbox).tell(broken)

    assert [str(error) for error in wait(broken)] == ["full wait"]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_is_no_exception_ends_this_actor_and_no_other(
    doer: Doer, kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """B14: Pykka alone stops all actors on SystemExit."""
    other = Doer(Doer.mailbox_for("Other"))
    launch(other)
    deaths: list[BaseException] = []
    doer.on_death = deaths.append
    broken = doing(throw(kind()))

    with caplog.at_level(logging.CRITICAL):
        Ref[Any](doer.mailbox).tell(broken)
        assert [type(error) for error in wait(broken)] == [Internal]
        doer.thread.join(WAIT_S)

    assert not doer.alive()
    assert [type(cause) for cause in deaths] == [kind]
    assert Ref[Any](other.mailbox).ask(Ping(), timeout=WAIT_S) is None


def test_messages_that_a_dying_actor_had_taken_are_handled_by_the_next_one(caplog: pytest.LogCaptureFixture) -> None:
    """Ours: nothing that was let in is lost, and the order stays."""

    class Greedy(Doer):
        MAILBOX: ClassVar[int] = 100
        BATCH: ClassVar[int] = 100

    mailbox = Greedy.mailbox_for("Greedy")
    seen: list[int] = []
    first, second = doing(lambda: seen.append(1)), doing(lambda: seen.append(2))
    for item in (doing(throw(SystemExit())), first, second):
        mailbox.put(item)
    dying = Greedy(mailbox)

    with caplog.at_level(logging.CRITICAL):
        launch(dying)
        dying.thread.join(WAIT_S)
    assert seen == []
    assert mailbox.depth() == 2
    launch(Greedy(mailbox))

    assert wait(second) == []
    assert seen == [1, 2]


def test_an_actor_whose_own_loop_breaks_dies_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """Ours: a fault between messages (a selector that fails) must not leave a mailbox that nobody reads."""

    class Broken(Doer):
        def take(self) -> Any:
            raise OSError("the selector is gone")

    died = threading.Event()
    actor = Broken(Broken.mailbox_for("Broken"))
    actor.on_death = lambda _cause: died.set()

    with caplog.at_level(logging.CRITICAL):
        launch(actor)
        assert died.wait(WAIT_S)

    assert not actor.alive()


def test_an_actor_that_got_no_thread_can_be_stopped_like_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a replacement that could not be started must not keep the others from stopping."""

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    actor = Doer(Doer.mailbox_for("Doer"))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            launch(actor)

    assert not actor.alive()
    assert halt(actor, timeout=0)


def test_a_full_mailbox_refuses_at_once_and_still_takes_the_stop() -> None:
    """Issue, "Actors": bounded mailboxes that refuse and never block."""
    held = Held(Doer.mailbox_for("Full"))
    ran: list[int] = []
    waiting = [doing(lambda number=number: ran.append(number)) for number in range(Doer.MAILBOX)]
    for message in waiting:
        held.ref.tell(message)

    began = time.monotonic()
    with pytest.raises(Busy, match="Full is busy"):
        held.ref.tell(doing(lambda: None))
    with pytest.raises(Busy):
        held.ref.ask(Question(lambda: "x"), timeout=WAIT_S)
    assert time.monotonic() - began < 1
    held.actor.stop()
    held.let_go()

    assert halt(held.actor, timeout=WAIT_S)
    assert ran == [0, 1, 2]


def test_what_was_let_in_already_may_pass_a_full_mailbox() -> None:
    """Ours: ``insist`` is for messages that end a call; they are bounded by the calls themselves."""
    held = Held(Doer.mailbox_for("Full"))
    for _ in range(Doer.MAILBOX):
        held.ref.tell(doing(lambda: None))
    last = doing(lambda: None)

    held.ref.insist(last)
    held.let_go()

    assert wait(last) == []


def test_an_ask_is_answered_with_what_the_handler_returns_or_raises(
    doer: Doer, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours: an ask carries its answer or its error back."""
    ref: Ref[Any] = Ref(doer.mailbox)

    assert ref.ask(Question(lambda: "yes"), timeout=WAIT_S) == "yes"
    with caplog.at_level(logging.CRITICAL), pytest.raises(ZeroDivisionError):
        ref.ask(Question(lambda: 1 // 0), timeout=WAIT_S)


def test_an_ask_gives_up_after_its_time() -> None:
    """STYLE 9: an ask names its timeout."""
    held = Held(Doer.mailbox_for("Slow"))

    with pytest.raises(pykka.Timeout):
        held.ref.ask(Question(lambda: "late"), timeout=0.01)
    held.let_go()


def test_who_settles_waits_for_no_actor_that_is_stuck_or_full() -> None:
    """Ours: what only wants to see the effect of what it told does not wait for ever."""
    held = Held(Doer.mailbox_for("Slow"))
    held.ref.settle(timeout=0.01)
    held.let_go()

    Ref[Any](Mailbox("Full", 0)).settle(timeout=WAIT_S)


def test_a_message_whose_failing_fails_does_not_hurt_the_actor(doer: Doer, caplog: pytest.LogCaptureFixture) -> None:
    """Ours: the rim's own rim."""

    class Worse(Do, frozen=True):
        def failed(self, error: A2mcpError) -> None:
            raise RuntimeError("even this")

    after = doing(lambda: None)
    with caplog.at_level(logging.CRITICAL):
        Ref[Any](doer.mailbox).tell(Worse(throw(ValueError()), [], threading.Event()))
        Ref[Any](doer.mailbox).tell(after)
        assert wait(after) == []


def test_poison_kills_any_actor(doer: Doer, caplog: pytest.LogCaptureFixture) -> None:
    """Ours: what the other tests of this folder kill actors with."""
    with caplog.at_level(logging.CRITICAL):
        doer.mailbox.put(Poison())
        doer.thread.join(WAIT_S)

    assert not doer.alive()


def test_a_wakeable_mailbox_is_readable_while_something_waits() -> None:
    """Ours: an actor that lives in a selector is woken by its mailbox."""
    import select

    mailbox = WakeableMailbox("Selecting", 10)
    poll = select.poll()
    poll.register(mailbox, select.POLLIN)

    assert poll.poll(0) == []
    mailbox.offer("a")
    mailbox.offer("b")
    assert [fd for fd, _ in poll.poll(1000)] == [mailbox.fileno()]
    mailbox.give_back(["returned"])
    assert mailbox.drain() == ["returned", "a", "b"]
    assert poll.poll(0) == []
    for number in range(100_000):
        mailbox.put(number)
    assert len(mailbox.drain()) == 100_000
    # A pipe holds fewer wake-ups than that: one more look finds nothing and makes it quiet.
    while poll.poll(0):
        assert mailbox.drain() == []
