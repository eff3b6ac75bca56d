"""Reading the log back."""

import os
from pathlib import Path

import msgspec
import pytest

from a2mcp.audit import query
from a2mcp.audit.journal import Journal, previous
from a2mcp.audit.query import Call, Filter, calls, follow, records, unfinished
from a2mcp.audit.record import done_line, event_line, start_line
from a2mcp.clock import SystemClock

ARGS = b'{"path":"/a"}'


def ts(second):
    return f"2026-10-16T04:35:{second:02d}.250Z"


def start(call, tool="read", sid="s1", second=0, args=ARGS):
    return start_line(ts(second), call, sid, tool, args)


def done(call, tool="read", sid="s1", second=3, is_error=False):
    return done_line(ts(second), call, sid, tool, ARGS, is_error=is_error)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a2mcp.log"


def descriptors():
    return len(list(Path("/dev/fd").iterdir()))


def ids(found):
    return [call.record.id for call in found]


def test_a_call_is_its_two_records(path):
    """Issue 2 section 7: paired by id, whatever lies between."""
    path.write_bytes(start("a") + start("b", "bash") + done("a", second=3) + done("b", "bash", is_error=True))
    first, second = calls(path)
    assert (first.start.id, first.done.id, first.seconds) == ("a", "a", 3.0)
    assert (second.record.tool, second.record.is_error) == ("bash", True)
    assert msgspec.json.decode(first.record.args) == {"path": "/a"}


def test_pairs_are_found_across_a_rotation(path):
    """Row U12: the start in the older generation, the end in the newer; exactly one end each."""
    journal = Journal(path, clock=SystemClock(), limit=900)
    names = [f"call-{n}" for n in range(4)]
    journal.append([start(name) for name in names])
    journal.append([done(name) for name in names])
    journal.close()
    assert previous(path).exists()
    found = list(calls(path))
    assert ids(found) == names
    assert all(call.start and call.done for call in found)


def test_calls_that_never_ended_are_listed_in_the_order_of_their_start(path):
    """Seed, audit: a hung call leaves a start without a done."""
    path.write_bytes(start("a") + start("b", "bash") + start("c") + done("b", "bash") + start("d", "bash"))
    assert ids(unfinished(path)) == ["a", "c", "d"]
    assert ids(unfinished(path, Filter(tool="bash"))) == ["d"]
    assert ids(calls(path)) == ["b", "a", "c", "d"]


def test_an_end_whose_start_was_rotated_away_is_still_shown(path):
    """Row U12; seed, contract notes: the log is a rolling window."""
    path.write_bytes(done("a") + event_line(ts(1), "e", None, "tunnel", {"action": "start"}))
    first, event = calls(path)
    assert (first.start, first.seconds) == (None, None)
    assert (event.record.sid, event.record.is_error) == (None, msgspec.UNSET)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(), ["a", "b", "c"]),
        (Filter(tool="bash"), ["b", "c"]),
        (Filter(session="s2"), ["c"]),
        (Filter(phase="start"), ["c"]),
        (Filter(phase="done"), ["a", "b"]),
        (Filter(tool="bash", session="s1"), ["b"]),
        (Filter(tool="nothing"), []),
    ],
)
def test_calls_are_filtered_by_tool_session_and_phase(path, wanted, expected):
    """Issue 2 section 7: filter by tool, session, phase."""
    path.write_bytes(start("a") + done("a") + start("b", "bash") + done("b", "bash") + start("c", "bash", "s2"))
    assert ids(calls(path, wanted)) == expected


def test_single_records_are_filtered_too(path):
    """Issue 2 section 7: filter by phase, oldest first."""
    previous(path).write_bytes(start("a"))
    path.write_bytes(done("a") + start("b"))
    assert [(r.id, r.phase) for r in records(path)] == [("a", "start"), ("a", "done"), ("b", "start")]
    assert [r.id for r in records(path, Filter(phase="start"))] == ["a", "b"]


@pytest.mark.parametrize(
    "junk",
    [
        start("torn")[:40] + b"\n",
        b"\n\n",
        b"[1]\n",
        b'{"ts":"x"}\n',
        b"\xff\xfe\x00\n",
        start("x").replace(b"/a", b"\xff"),
        b"x" * 300_000 + b"\n",
        b"[" * 50_000 + b"\n",
    ],
)
def test_what_is_not_a_record_is_passed_over(path, junk):
    """Row U02: a torn line, and whatever else, costs no other record."""
    path.write_bytes(start("a") + junk + done("a") + junk)
    assert [(r.id, r.phase) for r in records(path)] == [("a", "start"), ("a", "done")]


def test_a_whole_record_without_its_line_break_counts(path):
    """Row U02: a crash can cut off just the line break."""
    path.write_bytes(start("a") + done("a")[:-1])
    (call,) = calls(path)
    assert call.done is not None


def test_no_log_is_no_records(path):
    """Ours: a daemon that was never called has no log."""
    assert list(records(path)) == list(calls(path)) == []
    path.mkdir()
    assert list(records(path)) == []


@pytest.mark.timeout(20)
def test_a_fifo_in_place_of_the_log_does_not_block(path):
    """Row U05, reading side."""
    os.mkfifo(path)
    assert list(records(path)) == []


def test_a_rotation_while_opening_shows_no_record_twice(path, monkeypatch):
    """Ours: the file that was current when it was opened may be the older one a moment later."""
    path.write_bytes(start("a"))
    real = query._open

    def rotate_after(which):
        file = real(which)
        if which == path:
            path.rename(previous(path))
        return file

    monkeypatch.setattr(query, "_open", rotate_after)
    assert [r.id for r in records(path)] == ["a"]


def test_reading_remembers_a_bounded_number_of_open_calls(path, monkeypatch):
    """Ours: memory is bounded; the oldest are given out as unfinished."""
    monkeypatch.setattr(query, "MAX_OPEN", 2)
    path.write_bytes(b"".join(start(name) for name in "abcd") + done("d"))
    assert ids(calls(path)) == ["a", "b", "d", "c"]


def test_a_call_has_at_least_one_record():
    """Ours: an empty pair is a mistake of the programmer."""
    with pytest.raises(ValueError, match="at least one record"):
        _ = Call(None, None).record


def test_moments_that_are_not_moments_have_no_duration(path):
    """Ours: a hand-made line does not end the table."""
    path.write_bytes(start("a").replace(b"2026-", b"yesterday-") + done("a"))
    (call,) = calls(path)
    assert call.seconds is None


# --- following ------------------------------------------------------------------------------------------------------


def steps(*actions):
    """A wait that does the next thing instead of waiting, and ends when there is none."""
    todo = iter(actions)

    def wait():
        action = next(todo, None)
        if action is None:
            return False
        action()
        return True

    return wait


def appending(path, *lines):
    def act():
        with path.open("ab") as file:
            file.write(b"".join(lines))

    return act


def test_following_gives_only_what_is_new(path):
    """Issue 2 section 7: follow; what was there is not repeated, and a filter holds."""
    path.write_bytes(start("old"))
    wait = steps(appending(path, start("a"), start("b", "bash")), appending(path, done("a")))
    assert [(r.id, r.phase) for r in follow(path, wait, Filter(tool="read"))] == [("a", "start"), ("a", "done")]


def test_following_waits_for_the_end_of_a_line(path):
    """Ours: half a line is not a record and not lost."""
    path.write_bytes(b"")
    whole = start("a")
    wait = steps(appending(path, whole[:30]), appending(path, whole[30:]))
    assert [r.id for r in follow(path, wait)] == ["a"]


def test_following_survives_rotations(path):
    """Issue 2 section 7: the end of the old file, then the new one, none twice and none left out."""
    journal = Journal(path, clock=SystemClock(), limit=1000)
    names = [f"call-{n}" for n in range(40)]
    triples = [names[n : n + 3] for n in range(0, 40, 3)]
    actions = [lambda group=group: journal.append([start(n) for n in group]) for group in triples]
    assert [r.id for r in follow(path, steps(*actions))] == names
    journal.close()
    assert journal.counts.rotated_away > 0


def test_following_survives_deletion_truncation_and_a_late_beginning(path):
    """Ours: there need not be a log yet, and it may be taken away."""
    wait = steps(
        lambda: None,
        appending(path, start("a"), start("b")),
        path.unlink,
        appending(path, start("c"), start("d")),
        lambda: os.truncate(path, 0),
        appending(path, start("e")),
    )
    assert [r.id for r in follow(path, wait)] == list("abcde")


def test_a_follower_that_stops_early_leaves_nothing_open(path):
    """Ours: closing the iteration closes the file."""
    path.write_bytes(b"")
    before = descriptors()
    following = follow(path, steps(appending(path, start("a"), start("b"))))
    assert next(following).id == "a"
    following.close()
    assert descriptors() == before
