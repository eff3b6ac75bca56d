"""Whose turn it is when many are ready: by itself, with connections that only note that they were looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from a2mcp.http.server import precedence
from a2mcp.http.server.channel import Channel
from a2mcp.http.server.precedence import Precedence

if TYPE_CHECKING:
    from collections.abc import Callable

READY = 1
MS = 0.001


class Peer(Channel):
    """A connection without a socket; what it is ready for takes a while."""

    def __init__(self, name: str, *, known: bool = False, refused: bool = False, takes: float = 6 * MS) -> None:
        self.name = name
        self.known = known
        self.lingering_since = 1.0 if refused else 0.0
        self.connected = True
        self.takes = takes

    def __repr__(self) -> str:
        return self.name


def caller(takes: float = 0.0) -> Peer:
    return Peer("caller", known=True, takes=takes)


def strangers(count: int) -> list[Peer]:
    return [Peer(f"stranger {number}") for number in range(count)]


class Rounds:
    """A loop with a clock of its own, in which everybody is always ready."""

    def __init__(self, *peers: Any) -> None:
        self.looked_at: list[Any] = []
        self.now = 0.0
        self.asked = self.meanwhile = 0
        self.then: Callable[[Any], object] = lambda _: None
        self._here = dict(enumerate((*peers, "listener")))
        self._precedence = Precedence(
            self._here, self, listener="listener", look_after=self._look_after, meanwhile=self._meanwhile  # type: ignore[arg-type]
        )  # fmt: skip

    def monotonic(self) -> float:
        return self.now

    def wait(self, _seconds: float) -> list[tuple[int, int]]:
        self.asked += 1
        return [(fd, READY) for fd in self._here]

    def go(self) -> list[Any]:
        """One round; who was looked at in it."""
        self.looked_at = []
        self._precedence.take([(fd, READY) for fd in self._here])
        return self.looked_at

    def _look_after(self, peer: Any, _event: int) -> None:
        self.looked_at.append(peer)
        self.now += getattr(peer, "takes", 0.0)
        self.then(peer)

    def _meanwhile(self) -> None:
        self.meanwhile += 1


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Rounds]:
    def make(*peers: Any) -> Rounds:
        made = Rounds(*peers)
        monkeypatch.setattr(precedence, "time", made)
        return made

    return make


def test_callers_come_first_and_newcomers_last(rounds: Callable[..., Rounds]) -> None:
    """P4: whoever has the token waits for no stranger."""
    stranger, pipe, here = Peer("stranger"), "the pipe that wakes the loop", caller()
    assert rounds(stranger, here, pipe).go() == [here, pipe, stranger, "listener"]


def test_callers_are_looked_at_between_strangers(rounds: Callable[..., Rounds]) -> None:
    """P4: nor for more than a few of many; none of them is forgotten, and newcomers still come last."""
    (first, second, third), here = strangers(3), caller()
    made = rounds(first, second, third, here)

    assert made.go() == [here, first, here, second, here, third, "listener"]
    assert made.meanwhile == 2


def test_strangers_have_half_of_the_time(rounds: Callable[..., Rounds]) -> None:
    """P4: callers that take long do not make the round endless, and so the wait of a newcomer with the token."""
    made = rounds(*strangers(20), caller(takes=60 * MS))

    made.go()

    assert made.looked_at.count(made.looked_at[0]) == 3, "before them, after 6 ms and after 60 ms more"
    assert made.now <= 2 * (20 * 6 * MS) + 2 * 60 * MS


def test_who_was_refused_waits_when_there_is_no_time(rounds: Callable[..., Rounds]) -> None:
    """P4: what it still says is thrown away, which has time; but not for ever."""
    refused, stranger = Peer("refused", refused=True), Peer("stranger")
    made = rounds(refused, stranger)

    assert made.go() == [stranger, "listener"]
    stranger.takes = 0.0
    assert made.go() == [stranger, refused, "listener"]


def test_a_stranger_who_was_closed_meanwhile_is_left_alone(rounds: Callable[..., Rounds]) -> None:
    """Ours: what is done for one may end another."""
    first, second = strangers(2)
    made = rounds(first, second)
    made.then = lambda _: setattr(second, "connected", False)

    assert made.go() == [first, "listener"]


def test_without_strangers_nobody_is_asked_again(rounds: Callable[..., Rounds]) -> None:
    """Ours: the usual round costs nothing more."""
    made = rounds(caller(takes=1.0), caller(takes=1.0))
    made.go()
    assert (made.asked, made.meanwhile) == (0, 0)
