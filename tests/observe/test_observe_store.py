"""The store of events: bounded, readable after a kill, and never a reason for an error."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest
from harness import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from a2mcp import database as databases
from a2mcp.observe import store as stores
from a2mcp.observe.event import ALL, GAP, Event, Wanted, as_args, gap, with_gaps
from a2mcp.observe.store import Store


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    made = Store(tmp_path / "events.db", clock=clock, keep=1000)
    yield made
    made.close()


def event(sequence: int, **more) -> Event:
    return Event(**{"sequence": sequence, "ts": "t", "kind": "call.done", "tool": "bash", **more})


def numbers(events) -> list[int]:
    return [one.sequence for one in events]


def test_events_are_read_back_by_number_and_from_the_end(store):
    """Issue 6, item 3: replay of the last N."""
    assert store.append([event(1), event(2)])
    assert store.append([event(3, args=as_args(path="/x"), session="s")])

    assert store.since(1, 10) == (event(2), event(3, args=as_args(path="/x"), session="s"))
    assert numbers(store.since(0, 2)) == [1, 2]
    assert numbers(store.last(2)) == [2, 3]
    assert store.newest() == 3


def test_what_an_edit_changed_is_not_kept(store):
    """Ours: the log folds the contents of files, and the store must not hold what the log leaves out."""
    store.append([event(1, diff="-secret\n+other\n")])

    assert store.last(1) == (event(1),)
    assert b"secret" not in b"".join(path.read_bytes() for path in store._path.parent.iterdir())


def test_the_oldest_go_first_and_leave_a_gap(store):
    """Issue 6, item 3: a bounded store, gap notices."""
    for first in range(1, 3001, 50):
        store.append([event(number) for number in range(first, first + 50)])

    found = store.since(0, 5000)
    assert found[0] == gap(1, found[1].sequence - 1)
    assert found[-1].sequence == 3000
    assert 1000 <= len(found) - 1 <= 1100


def test_numbers_go_on_where_the_last_run_ended(tmp_path, clock, store):
    """Issue 6, item 3: a rising sequence."""
    store.append([event(7)])
    store.close()

    assert Store(tmp_path / "events.db", clock=clock).newest() == 7


def test_only_the_user_can_read_it(store):
    """Ours: every file of ours is 0600 from birth, those beside the database as well."""
    before = os.umask(0o000)
    try:
        store.append([event(1)])
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in store._path.parent.iterdir()}

    assert modes == dict.fromkeys(("events.db", "events.db-wal", "events.db-shm"), 0o600)


def test_a_disk_that_takes_nothing_pauses_events_and_is_tried_again(tmp_path, clock, caplog):
    """Issue 6, bad input, and row Q04: events pause with a notice, calls go on."""
    folder = tmp_path / "gone"
    store = Store(folder / "events.db", clock=clock)
    assert store.append([event(1)]) is False
    assert store.append([event(2)]) is False
    assert caplog.text.count("events are not kept") == 1
    assert store.failures == 2
    folder.mkdir()

    assert store.append([event(3)]) is False, "not before the pause is over"
    clock.seconds += stores.PAUSE_S
    assert store.append([event(4)]) is True
    assert store.since(0, 10) == (gap(1, 3), event(4))
    store.close()


@pytest.mark.parametrize("content", [b"no database at all" * 100, None], ids=["garbage", "another version"])
def test_a_file_that_is_no_store_of_ours_is_set_aside(tmp_path, clock, caplog, content):
    """Row Q05 and ours: a broken file costs what is in it, and is not ours to delete."""
    path = tmp_path / "events.db"
    if content is not None:
        path.write_bytes(content)
    else:
        with sqlite3.connect(path) as other:
            other.execute("PRAGMA user_version = 99")
        other.close()
    store = Store(path, clock=clock)

    assert store.append([event(1)]) is False
    clock.seconds += stores.PAUSE_S
    assert store.append([event(2)]) is True
    assert (tmp_path / "events.db.unreadable").exists()
    assert "events are not kept" in caplog.text
    store.close()


def test_a_sound_file_is_not_set_aside_for_a_page_that_could_not_be_read(tmp_path, clock, monkeypatch):
    """Row Q04: SQLite calls the file malformed then; nothing in it is lost."""
    store = Store(tmp_path / "events.db", clock=clock)
    assert store.append([event(1)]) is True
    with monkeypatch.context() as patch:
        patch.setattr(store, "_insert", lambda *_: (_ for _ in ()).throw(sqlite3.DatabaseError("malformed")))
        assert store.append([event(2)]) is False
    clock.seconds += stores.PAUSE_S
    assert store.append([event(3)]) is True
    assert store.since(0, 10) == (event(1), gap(2, 2), event(3))
    assert [path.name for path in tmp_path.iterdir() if "unreadable" in path.name] == []
    store.close()


def test_what_belongs_to_a_file_is_set_aside_with_it(tmp_path):
    """Ours: what a killed daemon kept last stands beside the file until it is opened again."""
    path = tmp_path / "events.db"
    path.write_bytes(b"half a file")
    path.with_name("events.db-wal").write_bytes(b"the last of it")
    databases.set_aside(path)
    assert path.with_name("events.db.unreadable").read_bytes() == b"half a file"
    assert path.with_name("events.db.unreadable-wal").read_bytes() == b"the last of it"
    assert not path.exists()


_WRITER = """
import sys
from pathlib import Path
from a2mcp.clock import SystemClock
from a2mcp.observe.event import Event
from a2mcp.observe.store import Store
store = Store(Path(sys.argv[1]), clock=SystemClock())
number = 0
while True:
    store.append([Event(sequence=number + n, ts="t", kind="call.done") for n in (1, 2, 3)])
    number += 3
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_everything_readable_that_it_had_kept(tmp_path, clock):
    """Issue 6, item 3: a durable store."""
    path = tmp_path / "events.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    kept = 0
    while kept < 300:
        kept = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    kept = max([kept, *(int(line) for line in writer.stdout.read().split() if line)])
    writer.wait(10)
    writer.stdout.close()

    store = Store(path, clock=clock)
    found = numbers(store.since(0, 10**6))
    assert found[:kept] == list(range(1, kept + 1))
    store.close()


def test_nothing_of_sqlite_is_imported_before_the_first_event(tmp_path):
    """Ours: the start of the daemon does not pay for it."""
    script = "import sys, actors.daemon; print('sqlite3' in sys.modules, 'opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False False"


def test_another_process_that_locks_the_file_pauses_events_for_as_long(store, clock):
    """Row Q02: a bounded wait, then nothing is kept for a while, and later it goes on behind a gap."""
    store.append([event(1)])
    with sqlite3.connect(store._path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert store.append([event(2)]) is False
        assert time.monotonic() - began < 10
        other.execute("ROLLBACK")
    other.close()

    clock.seconds += stores.PAUSE_S
    assert store.append([event(3)]) is True
    assert store.since(0, 10) == (event(1), gap(2, 2), event(3))


def test_another_process_that_reads_does_not_stop_the_writer(store):
    """Row Q06 and ours: somebody looks with `sqlite3`."""
    store.append([event(1)])
    with sqlite3.connect(store._path) as other:
        other.execute("BEGIN")
        assert other.execute("SELECT count(*) FROM groups").fetchone() == (1,)
        assert store.append([event(2)]) is True
    other.close()


# --- what is wanted -----------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 60), unique=True).map(sorted), st.integers(0, 10))
@settings(max_examples=200)
def test_a_gap_stands_wherever_numbers_are_missing_and_nowhere_else(present, after):
    """Issue 6, item 3: gap notices."""
    seen = [number for number in present if number > after]
    found = list(with_gaps([event(number) for number in seen], after))

    covered: list[int] = []
    for one in found:
        if one.kind == GAP:
            first = covered[-1] + 1 if covered else after + 1
            assert one == gap(first, one.sequence)
            covered += range(first, one.sequence + 1)
        else:
            covered.append(one.sequence)
    assert covered == list(range(after + 1, (seen[-1] if seen else after) + 1))


@pytest.mark.parametrize(
    ("wanted", "takes"),
    [
        (ALL, True),
        (Wanted(tool="bash"), True), (Wanted(tool="read"), False),
        (Wanted(status="ok"), True), (Wanted(status="error"), False),
        (Wanted(session="s"), True), (Wanted(session="t"), False),
        (Wanted(kind="call"), True), (Wanted(kind="call.done"), True), (Wanted(kind="cal"), False),
        (Wanted(path="/srv"), True), (Wanted(path="/srv/"), True), (Wanted(path="/srv/app"), True),
        (Wanted(path="/sr"), False), (Wanted(path="/srv/app/x"), False),
    ],
)  # fmt: skip
def test_a_filter_takes_what_was_asked_for(wanted, takes):
    """Issue 6, item 3: filters by tool, status, session, path."""
    assert wanted.takes(event(1, status="ok", session="s", args=as_args(path="/srv/app"))) is takes
    assert wanted.takes(gap(1, 2)), "nobody knows what was in a gap"


def test_a_python_that_cannot_import_sqlite_keeps_nothing_and_goes_on(store, clock, monkeypatch, caplog):
    """Ours: without a descriptor left nothing can be imported; and not every Python comes with it."""
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "sqlite3", None)
        assert store.append([event(1)]) is False
    assert "events are not kept" in caplog.text
    clock.seconds += stores.PAUSE_S
    assert store.append([event(2)]) is True
