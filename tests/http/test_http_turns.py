"""Whose turn it is when many are ready: by itself, with connections that only note that they were looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2mcp.http.server import turns
from a2mcp.http.server.channel import Channel
from a2mcp.http.server.turns import Turns

if TYPE_CHECKING:
    import pytest

READY = 1


class Peer(Channel):
    """A connection without a socket."""

    def __init__(self, name: str, *, known: bool = False, refused: bool = False) -> None:
        self.name = name
        self.known = known
        self.lingering_since = 1.0 if refused else 0.0
        self.connected = True

    def __repr__(self) -> str:
        return self.name


class Poller:
    """Says each time that the callers are ready."""

    def __init__(self, *callers: int) -> None:
        self.asked = 0
        self._callers = callers

    def wait(self, _seconds: float) -> list[tuple[int, int]]:
        self.asked += 1
        return [(fd, READY) for fd in self._callers]


def round_of(peers: list[Any], poller: Any, looked_at: list[Any]) -> None:
    here = dict(enumerate(peers))
    Turns(here, poller, lambda peer, _event: looked_at.append(peer)).take([(fd, READY) for fd in here])


def test_callers_come_first_and_those_who_were_refused_last() -> None:
    """P4: whoever has the token waits for no stranger."""
    refused, stranger, caller = Peer("refused", refused=True), Peer("stranger"), Peer("caller", known=True)
    looked_at: list[Any] = []

    round_of([refused, stranger, caller, "the pipe that wakes the loop"], Poller(), looked_at)

    assert looked_at == [caller, "the pipe that wakes the loop", stranger, refused]


def test_callers_are_looked_at_between_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """P4: nor for more than a few of many; and no stranger is forgotten."""
    monkeypatch.setattr(turns, "STRANGERS_S", -1.0)
    strangers, caller = [Peer(f"stranger {number}") for number in range(3)], Peer("caller", known=True)
    looked_at: list[Any] = []

    round_of([*strangers, caller], Poller(3), looked_at)

    assert looked_at == [caller, caller, strangers[0], caller, strangers[1], caller, strangers[2]]


def test_who_was_refused_waits_when_there_is_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """P4: what it still says is thrown away, which has time."""
    monkeypatch.setattr(turns, "STRANGERS_S", -1.0)
    looked_at: list[Any] = []
    stranger = Peer("stranger")

    round_of([Peer("refused", refused=True), stranger], Poller(), looked_at)

    assert looked_at == [stranger]


def test_a_stranger_who_was_closed_meanwhile_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: what is done for one may end another."""
    monkeypatch.setattr(turns, "STRANGERS_S", 1.0)
    first, second = Peer("first"), Peer("second")
    looked_at: list[Any] = []

    def look_after(peer: Any, _event: int) -> None:
        looked_at.append(peer)
        second.connected = False

    Turns({0: first, 1: second}, Poller(), look_after).take([(0, READY), (1, READY)])  # type: ignore[arg-type]

    assert looked_at == [first]


def test_without_strangers_nobody_is_asked_again() -> None:
    """Ours: the usual round costs nothing more."""
    poller = Poller()
    round_of([Peer("caller", known=True)] * 3, poller, [])
    assert poller.asked == 0
