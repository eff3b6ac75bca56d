"""Transcripts on disk: kept whole, read in windows, ended where a daemon was killed, forgotten when there are too many."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from a2mcp.errors import CannotKeep
from a2mcp.inference import transcripts as module
from a2mcp.inference.ledger import Spent
from a2mcp.inference.transcript import MAIN, Entry, Kind, Outcome, Session, State, new_session, title_of
from a2mcp.inference.transcripts import Happened, Transcripts
from a2mcp.types import SessionId

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


MOST_BYTES = 1 << 20


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 11, 30, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def session(name: str = "a1", updated: str = "2026-11-30T10:00:00.000Z") -> Session:
    return new_session(SessionId(name), updated, title="t", client=None, model=None)


def entry(seq: int) -> Entry:
    return Entry(seq=seq, at="2026-11-30T10:00:00.000Z", kind=Kind.SAID, text=f"line {seq}")


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Transcripts]:
    made = Transcripts(tmp_path / "agents.db", Clock(), kept_bytes=MOST_BYTES)
    yield made
    made.close()


def again(tmp_path: Path) -> Transcripts:
    return Transcripts(tmp_path / "agents.db", Clock(), kept_bytes=MOST_BYTES)


def test_nothing_is_made_by_looking(kept: Transcripts, tmp_path: Path) -> None:
    """Ours: a daemon without agents has no file of theirs."""
    assert (kept.sessions(), kept.session(MAIN), kept.window(MAIN, 0, 10), kept.history(MAIN)) == ([], None, [], [])
    assert kept.spent("2026-11-30") == Spent()
    assert list(tmp_path.iterdir()) == []


def test_what_happened_is_read_back_by_another_daemon(kept: Transcripts, tmp_path: Path) -> None:
    """Source: issue, point 2: durable."""
    facts = replace(session(), entries=3, spent=Spent(requests=1))
    kept.keep(Happened(session=facts, entries=tuple(map(entry, (1, 2, 3))), messages=(b'{"n":1}', b'{"n":2}')))
    kept.keep(Happened(session=facts, messages=(b'{"n":3}',), spent=Spent(requests=1, input_tokens=9)))
    kept.close()

    other = again(tmp_path)
    assert other.session(facts.id) == facts
    assert [one.seq for one in other.window(facts.id, 1, 1)] == [2]
    assert other.history(facts.id) == [b'{"n":1}', b'{"n":2}', b'{"n":3}']
    assert other.spent("2026-11-30") == Spent(requests=1, input_tokens=9)
    assert other.spent("2026-11-29") == Spent()
    other.close()


def test_the_file_is_private(kept: Transcripts, tmp_path: Path) -> None:
    """Ours: it holds what tools have read."""
    kept.keep(Happened(session=session()))

    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_a_turn_that_a_killed_daemon_left_is_ended_once(kept: Transcripts, tmp_path: Path) -> None:
    """Source: issue, point 2: survive a restart."""
    kept.keep(Happened(session=replace(session(), state=State.RUNNING, entries=1), entries=(entry(1),)))
    kept.close()

    for _ in range(2):
        other = again(tmp_path)
        found = other.session(SessionId("a1"))
        assert found is not None
        assert (found.state, found.outcome, found.entries) == (State.IDLE, Outcome.INTERRUPTED, 2)
        assert [one.kind for one in other.window(found.id, 0, 10)] == [Kind.SAID, Kind.END]
        other.close()


def test_a_turn_of_this_daemon_is_not_ended_by_opening_the_file_anew(kept: Transcripts, tmp_path: Path) -> None:
    """Ours: after a fault of the disk the file is opened again, under turns that go on."""
    kept.keep(Happened(session=replace(session(), state=State.RUNNING)))
    kept.close()

    found = kept.session(SessionId("a1"))
    assert found is not None
    assert found.state is State.RUNNING


def test_the_sessions_that_were_still_for_longest_are_forgotten_but_never_main(
    kept: Transcripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: every store has a chosen size."""
    monkeypatch.setattr(module, "KEEP", 3)
    kept.keep(Happened(session=session(MAIN, "2026-11-01T00:00:00.000Z")))
    for day in range(10, 16):
        facts = session(f"a{day}", f"2026-11-{day}T00:00:00.000Z")
        kept.keep(Happened(session=facts, entries=(entry(1),), messages=(b"{}",)))

    assert [one.id for one in kept.sessions()] == ["a15", "a14", "a13", MAIN]
    assert kept.window(SessionId("a10"), 0, 10) == []
    assert kept.history(SessionId("a10")) == []


def test_what_takes_too_much_room_is_forgotten_but_nothing_that_goes_on(kept: Transcripts, tmp_path: Path) -> None:
    """Issue 5, item 6: a total size, the oldest first; never a turn that goes on, nor the one that is written."""
    long = tuple(replace(entry(seq), text="x" * 10_000) for seq in range(1, 11))
    running = replace(session("a01", "2026-11-01T00:00:00.000Z"), state=State.RUNNING)
    kept.keep(Happened(session=running, entries=long))
    for day in range(10, 29):
        facts = session(f"a{day}", f"2026-11-{day}T00:00:00.000Z")
        kept.keep(Happened(session=facts, entries=long, messages=(b"{}",)))

    names = [one.id for one in kept.sessions()]
    assert names[0] == "a28"
    assert names[-1] == "a01"
    assert names[:-1] == [f"a{day}" for day in range(28, 29 - len(names), -1)]
    assert 5 < len(names) < 10, "about a hundred kilobytes each, of a megabyte"
    assert kept.window(SessionId("a10"), 0, 10) == []
    assert (tmp_path / "agents.db").stat().st_size < 1.2 * MOST_BYTES


def test_of_what_the_host_has_told_the_newest_is_kept(kept: Transcripts, tmp_path: Path) -> None:
    """Ours: the session ``main`` is never forgotten, so what it has been told must not grow for ever."""
    for seq in range(1, 301):
        facts = replace(session(MAIN), entries=seq)
        kept.keep(Happened(session=facts, entries=(replace(entry(seq), text="x" * 10_000),)))

    numbers = [one.seq for one in kept.window(MAIN, 0, 1000)]
    assert numbers == list(range(301 - len(numbers), 301))
    assert len(numbers) > 30
    assert (tmp_path / "agents.db").stat().st_size < 1.2 * MOST_BYTES


def test_what_is_kept_now_is_kept_even_where_it_takes_all_the_room(kept: Transcripts) -> None:
    """Ours: a limit is no reason to lose what has just happened."""
    for seq in (1, 2):
        facts = replace(session(MAIN), entries=seq)
        kept.keep(Happened(session=facts, entries=(replace(entry(seq), text="x" * 2 * MOST_BYTES),)))

    assert [one.seq for one in kept.window(MAIN, 0, 10)] == [2]


def test_what_is_no_database_of_ours_is_set_aside_and_said(kept: Transcripts, tmp_path: Path) -> None:
    """Ours: the first who meets it is told, the next goes on."""
    (tmp_path / "agents.db").write_bytes(b"nothing that SQLite knows " * 100)
    with pytest.raises(CannotKeep):
        kept.keep(Happened(session=session()))
    kept.keep(Happened(session=session()))

    assert kept.session(SessionId("a1")) is not None
    assert (tmp_path / "agents.db.unreadable").exists()


def test_a_step_is_kept_whole_or_not_at_all(kept: Transcripts) -> None:
    """Ours: half a step would be a transcript that says what did not happen."""
    kept.keep(Happened(session=session()))
    broken = Happened(session=replace(session(), entries=9), entries=(entry(1),), messages=(object(),))  # type: ignore[arg-type]
    with pytest.raises(CannotKeep):
        kept.keep(broken)

    found = kept.session(SessionId("a1"))
    assert found is not None
    assert found.entries == 0
    assert kept.window(SessionId("a1"), 0, 10) == []


@pytest.mark.parametrize(
    ("prompt", "title"),
    [("Say hi.", "Say hi."), ("one\n two\t three", "one two three"), ("x" * 100, "x" * 79 + "…"), ("", "")],
)
def test_a_title_is_one_short_line(prompt: str, title: str) -> None:
    """Ours."""
    assert title_of(prompt) == title


def test_a_title_shows_no_secret() -> None:
    """Ours: titles are listed to everybody."""
    assert "hunter2hunter2" not in title_of("log in with password=hunter2hunter2")
