"""The supervisor: order of start and stop, restarts, and when it gives up."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from living import WAIT_S, Clock, Poison

from actors.kit import Actor
from actors.ref import Mailbox, Message, Ping, Ref
from actors.supervisor import RESTARTS, WITHIN_S, Child, Supervisor, look

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Note(Message, frozen=True):
    text: str


class Member(Actor[Any]):
    MAILBOX: ClassVar[int] = 100

    def __init__(self, mailbox: Mailbox, events: list[str], started: threading.Semaphore) -> None:
        super().__init__(mailbox)
        self._events = events
        self._started = started

    def on_start(self) -> None:
        self._events.append(f"start {self.mailbox.name}")
        self._started.release()

    def on_stop(self) -> None:
        self._events.append(f"stop {self.mailbox.name}")

    def receive(self, message: Note) -> None:
        self._events.append(message.text)


class Family:
    """A supervisor over members that write down what happens to them."""

    def __init__(self, *names: str) -> None:
        self.clock = Clock()
        self.given_up: list[str] = []
        self.gave_up = threading.Event()
        self.events: list[str] = []
        self.started = threading.Semaphore(0)
        self.boxes = [Member.mailbox_for(name) for name in names]
        self.supervisor = Supervisor(Supervisor.mailbox_for("Supervisor"), clock=self.clock, give_up=self._give_up)
        self.supervisor.start_children([Child(box, self._make) for box in self.boxes])
        self.await_starts(len(names))

    def _give_up(self, reason: str) -> None:
        self.given_up.append(reason)
        self.gave_up.set()

    def _make(self, mailbox: Mailbox) -> Member:
        return Member(mailbox, self.events, self.started)

    def await_starts(self, count: int) -> None:
        for _ in range(count):
            assert self.started.acquire(timeout=WAIT_S)

    def alive(self, box: Mailbox) -> None:
        assert Ref[Any](box).ask(Ping(), timeout=WAIT_S) is None


@pytest.fixture
def family(request: pytest.FixtureRequest) -> Iterator[Callable[..., Family]]:
    families: list[Family] = []

    def make(*names: str) -> Family:
        families.append(Family(*names))
        return families[-1]

    yield make
    for each in families:
        each.supervisor.stop_children()


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")


def test_children_start_in_order_and_stop_in_the_reverse_one(family: Callable[..., Family]) -> None:
    """STYLE 11: the order is written once."""
    three = family("A", "B", "C")
    three.supervisor.stop_children()

    assert three.events == ["start A", "start B", "start C", "stop C", "stop B", "stop A"]


def test_stopping_handles_first_what_the_mailbox_holds(family: Callable[..., Family]) -> None:
    """Ours: a record that waits is written before the writer goes."""
    one = family("A")
    for number in range(50):
        Ref[Any](one.boxes[0]).tell(Note(str(number)))
    one.supervisor.stop_children()

    assert one.events == ["start A", *map(str, range(50)), "stop A"]


def test_a_child_that_dies_is_started_again_on_its_mailbox(family: Callable[..., Family]) -> None:
    """Issue, "Actors": a killed actor is replaced; refs stay good and the message behind the killer is handled."""
    pair = family("A", "B")
    pair.boxes[0].put(Poison())
    Ref[Any](pair.boxes[0]).tell(Note("behind the killer"))

    pair.await_starts(1)
    pair.alive(pair.boxes[0])

    assert "behind the killer" in pair.events
    assert pair.supervisor.restarts == 1
    pair.alive(pair.boxes[1])


def test_a_child_whose_thread_vanished_is_found_by_looking(family: Callable[..., Family]) -> None:
    """Ours: not every end can say so itself."""
    one = family("A")
    actor = one.supervisor._actors["A"]
    actor.on_death = lambda _cause: None
    one.boxes[0].put(Poison())
    actor.thread.join(WAIT_S)

    look(one.supervisor)

    one.await_starts(1)
    one.alive(one.boxes[0])


def test_looking_at_a_healthy_family_changes_nothing(family: Callable[..., Family]) -> None:
    """Ours: the loop looks once a second."""
    one = family("A")
    for _ in range(10):
        look(one.supervisor)
    Ref[Any](one.supervisor.mailbox).ask(Ping(), timeout=WAIT_S)

    assert one.supervisor.restarts == 0
    assert one.events == ["start A"]


def test_too_many_deaths_end_it_once_and_for_all(family: Callable[..., Family]) -> None:
    """Issue, "Actors": restart with an intensity limit, then a loud exit."""
    pair = family("A", "B")
    for _ in range(RESTARTS):
        pair.boxes[0].put(Poison())
        pair.await_starts(1)
    pair.boxes[1].put(Poison())

    assert pair.gave_up.wait(WAIT_S)
    pair.boxes[0].put(Poison())
    pair.supervisor._actors["A"].thread.join(WAIT_S)
    Ref[Any](pair.supervisor.mailbox).ask(Ping(), timeout=WAIT_S)

    assert pair.given_up == [f"actors died {RESTARTS + 1} times in 30 s, B the last of them"]
    assert pair.supervisor.restarts == RESTARTS


def test_deaths_long_ago_do_not_count(family: Callable[..., Family]) -> None:
    """Ours: the limit is on intensity, not on the number in a year."""
    one = family("A")
    for _ in range(3 * RESTARTS):
        one.boxes[0].put(Poison())
        one.await_starts(1)
        one.clock.seconds += WITHIN_S / RESTARTS + 1

    one.alive(one.boxes[0])
    assert one.given_up == []


def test_the_end_of_the_supervisor_itself_is_loud(family: Callable[..., Family]) -> None:
    """Ours: with nobody to restart anybody, the daemon must not go on."""
    one = family("A")
    one.supervisor.mailbox.put(Poison())

    assert one.gave_up.wait(WAIT_S)
    assert one.given_up == ["Supervisor died"]


def test_a_supervisor_that_vanished_is_noticed(family: Callable[..., Family]) -> None:
    """Ours: as above, when it could not say so."""
    one = family("A")
    one.supervisor.on_death = lambda _cause: None
    one.supervisor.mailbox.put(Poison())
    one.supervisor.thread.join(WAIT_S)

    look(one.supervisor)
    look(one.supervisor)

    assert one.given_up == ["Supervisor is gone"]


def test_who_died_and_was_not_replaced_is_tidied_up_after(family: Callable[..., Family]) -> None:
    """Ours: running commands must not survive because the actor that owned them did not."""
    one = family("A")
    one.supervisor.end("enough")
    one.boxes[0].put(Poison())
    one.supervisor._actors["A"].thread.join(WAIT_S)

    one.supervisor.stop_children()

    assert one.events == ["start A", "stop A"]
