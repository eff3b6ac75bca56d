"""Who watches: what they are told, and what happens to one who does not read."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from a2mcp.observe import render
from a2mcp.observe.chronicle import MOST_REPLAYED, TELL_S, Chronicle
from a2mcp.observe.event import ALL, CALL_DONE, CALL_START, GAP, LOST, Event, Wanted, decode, encode, gap
from a2mcp.observe.tally import NOT_OURS, Tally
from a2mcp.observe.watching import AT_ONCE, BEHIND_BYTES, Group, Watch


class Line:
    """An outlet that remembers."""

    def __init__(self) -> None:
        self.data = b""
        self.waits = 0
        self.there = True
        self.tended: list[float] = []

    def emit(self, data: bytes) -> bool:
        self.data += data
        return self.there

    def unsent(self) -> int:
        return self.waits

    def tend(self, now: float) -> None:
        self.tended.append(now)

    def when_gone(self, tell) -> None:
        self.tell = tell

    @property
    def events(self) -> list[Event]:
        return [decode(line[6:]) for line in self.data.split(b"\n") if line.startswith(b"data: ")]


class Shelf:
    """A store in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def append(self, group) -> bool:
        self.events += group
        return True

    def newest(self) -> int:
        return self.events[-1].sequence if self.events else 0

    def since(self, after, limit, wanted):
        return tuple(e for e in self.events if e.sequence > after and wanted.takes(e))[:limit]

    def last(self, count, wanted):
        return tuple(e for e in self.events if wanted.takes(e))[-count:]


class Hours:
    """A clock on which an hour passes between two looks: whoever watches may be told each time."""

    def __init__(self) -> None:
        self._hours = itertools.count()

    def monotonic(self) -> float:
        return next(self._hours) * 3600.0


class Turned:
    """A clock that stands until it is turned."""

    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def chronicle() -> Chronicle:
    return Chronicle(Shelf(), Tally(), Hours())  # type: ignore[arg-type]


def numbered(first: int, count: int, **more) -> list[Event]:
    return [Event(sequence=number, kind="call.done", **more) for number in range(first, first + count)]


def group(first: int, count: int, **more) -> Group:
    return Group(numbered(first, count, **more))


def happened(count: int, **more) -> list[Event]:
    return [Event(kind="call.done", **more) for _ in range(count)]


def test_a_watcher_is_told_in_order_and_once(line):
    """Issue 6, item 3."""
    watch = Watch(line, ALL, seen=2)
    assert watch.tell(group(1, 4))
    assert watch.tell(group(5, 1))

    assert [one.sequence for one in line.events] == [3, 4, 5]
    assert line.data.startswith(b"id: 3\ndata: {")


def test_more_than_anybody_reads_is_passed_over_with_a_gap(line):
    """Issue 6, item 3: publishing never slows a call."""
    Watch(line, ALL, seen=0).tell(group(1, AT_ONCE + 50))

    assert line.events[0] == gap(1, 50)
    assert [one.sequence for one in line.events[1:]] == list(range(51, AT_ONCE + 51))


def test_a_watcher_that_does_not_read_is_told_later_what_it_missed(line):
    """Issue 6, item 3: a slow watcher is dropped with a gap notice."""
    watch = Watch(line, ALL, seen=0)
    line.waits = BEHIND_BYTES + 1
    watch.tell(group(1, 3))
    watch.tell(group(4, 2))
    assert line.events == []
    line.waits = 0
    watch.tell(group(6, 1))

    assert line.events == [gap(1, 5), *numbered(6, 1)]
    watch.tell(group(7, 1))
    assert line.events[-1].sequence == 7
    assert len(line.events) == 3


def test_what_was_not_wanted_is_no_gap(line):
    """Ours: a filter hides, it does not lose."""
    watch = Watch(line, Wanted(tool="read"), seen=0)
    watch.tell(group(1, 3, tool="bash"))
    watch.tell(group(4, 1, tool="read"))

    assert [one.sequence for one in line.events] == [4]
    assert GAP not in {one.kind for one in line.events}


def test_numbers_rise_and_lost_events_are_a_gap(line, chronicle):
    """Issue 6, item 3: gap notices; what could not be taken has numbers, too."""
    chronicle.watch(line, ALL, after=None, history=0)
    chronicle.take(happened(2))
    chronicle.take(happened(1), lost=3)

    assert [(one.kind, one.sequence) for one in line.events] == [
        ("call.done", 1), ("call.done", 2), (GAP, 5), ("call.done", 6)
    ]  # fmt: skip
    assert chronicle.tally.lost == 3
    assert chronicle.newest == 6


def test_a_new_watcher_gets_the_last_ones_then_what_comes(line, chronicle):
    """Issue 6, item 3: replay of the last N, live after."""
    chronicle.take(happened(5))
    chronicle.watch(line, ALL, after=None, history=2)
    chronicle.take(happened(1))

    assert line.data.startswith(b": ")
    assert [one.sequence for one in line.events] == [4, 5, 6]


def test_a_watcher_that_comes_back_gets_what_it_missed(line, chronicle):
    """Issue 6, item 2: reconnects and catches up by sequence without gaps."""
    chronicle.take(happened(5))
    chronicle.watch(line, ALL, after=3, history=0)

    assert [one.sequence for one in line.events] == [4, 5]


def test_a_watcher_that_was_away_for_long_gets_a_gap_and_the_newest(line, chronicle):
    """Ours: a bound on what one reconnect costs."""
    chronicle.take(happened(MOST_REPLAYED + 200))
    chronicle.watch(line, ALL, after=50, history=0)

    assert line.events[0] == gap(51, 200)
    assert [one.sequence for one in line.events[1:]] == list(range(201, MOST_REPLAYED + 201))


def test_a_watcher_of_a_store_that_is_no_more_begins_anew(line, chronicle):
    """Ours: its number is higher than any that was given since."""
    chronicle.take(happened(2))
    chronicle.watch(line, ALL, after=900, history=0)

    assert [one.sequence for one in line.events] == [1, 2]


def test_a_watcher_that_has_left_is_let_go(line, chronicle):
    """Ours: no list that only grows."""
    name = chronicle.watch(line, ALL, after=None, history=0)
    chronicle.tend(4.0)
    assert (chronicle.watchers, line.tended) == (1, [4.0])
    line.there = False
    chronicle.take(happened(1))
    assert chronicle.watchers == 0
    chronicle.leave(name)


def test_a_name_that_is_no_tool_is_not_counted_by_itself():
    """Ours: a caller must not choose how many labels there are."""
    tally = Tally(lambda name: name == "bash")
    for name in ("bash", "x1", "x2"):
        tally.count(Event(kind="call.done", tool=name, status="ok", seconds=0.003))

    assert tally.calls == {("bash", "ok"): 1, (NOT_OURS, "ok"): 2}
    assert tally.durations["bash"].buckets[2] == 1


def test_an_event_is_one_line_of_json():
    """Ours: an event stream ends an event at a line break."""
    encoded = encode(Event(sequence=1, kind="warning", args=msgspec.Raw(b'{"text":"a\\nb"}'), client="x\ny"))

    assert b"\n" not in encoded
    assert decode(encoded).client == "x\ny"


def test_a_call_that_a_killed_daemon_left_gets_an_end() -> None:
    """Ours: a line that says "running" for ever says what is not so."""
    shelf = Shelf()
    before = Chronicle(shelf, Tally(), Hours())  # type: ignore[arg-type]
    before.take([Event(kind=CALL_START, call=call, status="running") for call in ("a", "b")])
    before.take([Event(kind=CALL_DONE, call="a", status="ok")])

    after = Chronicle(shelf, Tally(), Hours())  # type: ignore[arg-type]
    for _ in range(2):
        after.take([Event(kind="session", ts="now")])

    assert [(e.sequence, e.kind, e.status, e.call) for e in shelf.events[3:]] == [
        (4, CALL_DONE, LOST, "b"), (5, "session", None, None), (6, "session", None, None),
    ]  # fmt: skip
    assert "the daemon ended before this call had" in render.line(shelf.events[3]).plain


def test_watchers_of_a_busy_daemon_are_told_together_and_not_with_every_group(line):
    """Ours: telling forty of them each time cost calls an eighth of their pace."""
    clock = Turned()
    chronicle = Chronicle(Shelf(), Tally(), clock)  # type: ignore[arg-type]
    chronicle.watch(line, ALL, after=None, history=0)
    chronicle.take(happened(1))
    assert len(line.events) == 1, "the first after a silence is told at once"
    assert chronicle.tell_in_s() is None

    clock.now_s += TELL_S / 4
    chronicle.take(happened(1))
    chronicle.take(happened(1), lost=2)
    assert len(line.events) == 1
    assert chronicle.tell_in_s() == pytest.approx(TELL_S * 3 / 4)

    clock.now_s += TELL_S
    chronicle.tell()
    assert [(event.kind, event.sequence) for event in line.events[1:]] == [(CALL_DONE, 2), (GAP, 4), (CALL_DONE, 5)]
    assert chronicle.tell_in_s() is None
