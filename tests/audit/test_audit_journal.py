"""The log file: append, rotate, repair, and what happens when the disk will not."""

import io
import json
import os
import shutil
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from a2mcp.audit import chain, logfile
from a2mcp.audit import journal as module
from a2mcp.audit.journal import LIMIT, Counts, Journal, previous
from a2mcp.clock import SystemClock

HASH_BYTES = len(',"hash":""') + chain.HEX
NAMED = chain.PREV_BYTES
"""What the first line of a file takes more: it names the hash before it."""


class HandClock(SystemClock):
    """A clock that the test turns."""

    t = 1000.0

    def monotonic(self):
        return self.t


def line(n, size=100):
    """A line that has this size in the log when it is the record n + 1 of its chain."""
    head = f'{{"n":{n},"pad":"'
    return (head + "x" * (size - len(head) - len(f',"seq":{n + 1}') - HASH_BYTES - 3) + '"}\n').encode()


def chained(*lines, after=chain.START):
    """What these lines are in a file that begins with them."""
    first, *rest = chain.join(lines, after)
    return b"".join((chain.naming(first, after.hash), *rest))


def link_of(*lines):
    """What goes on from these lines when they are the first."""
    return chain.link_of(chain.join(lines, chain.START)[-1])


def numbers(*paths):
    """The numbers of the records in the files, passing over what is torn."""
    found = []
    for file in paths:
        for text in file.read_bytes().split(b"\n") if file.exists() else ():
            try:
                found.append(json.loads(text)["n"])
            except ValueError:
                continue
    return found


def both(path):
    return numbers(previous(path), path)


def descriptors():
    return len(list(Path("/dev/fd").iterdir()))


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# --- appending ----------------------------------------------------------------------------------------------------


def test_a_group_is_written_with_one_write(make, path, monkeypatch):
    """Issue 2 section 4 and design section 3: one write(2) for a whole group."""
    sizes, write = [], os.write
    monkeypatch.setattr(logfile.os, "write", lambda fd, data: sizes.append(len(data)) or write(fd, data))
    journal = make()
    journal.append([line(n) for n in range(64)])
    journal.append([])
    assert sizes == [6400 + NAMED]
    assert both(path) == list(range(64))
    assert journal.counts == Counts(written=64, failures=0, rotated_away=0)


def test_the_file_is_private_whatever_the_umask(make, path):
    """Row U10; seed, audit: 0600, under umask 000, and so is the generation before it."""
    before = os.umask(0)
    try:
        journal = make(limit=250)
        journal.append([line(n) for n in range(5)])
    finally:
        os.umask(before)
    assert (mode(path), mode(previous(path))) == (0o600, 0o600)


@pytest.mark.parametrize("wide", [0o644, 0o666, 0o640, 0o700])
def test_an_existing_file_is_made_private(make, path, wide):
    """Row U05: the mode becomes 0600, and what is there stays."""
    path.write_bytes(line(0))
    path.chmod(wide)
    make().append([line(1)])
    assert mode(path) == 0o600
    assert both(path) == [0, 1]


def test_a_file_that_is_opened_to_others_later_is_made_private_again(make, path):
    """Ours: somebody's chmod does not last."""
    journal = make()
    journal.append([line(0)])
    path.chmod(0o644)
    journal.append([line(1)])
    assert mode(path) == 0o600
    assert both(path) == [0, 1]


def test_the_descriptor_is_not_inherited(make):
    """Ours: a command that a tool runs cannot write into the log."""
    journal = make()
    journal.append([line(0)])
    assert not os.get_inheritable(journal._log._fd)


@pytest.mark.parametrize(("sync", "times"), [(False, 0), (True, 2)])
def test_sync_waits_for_the_disk_once_per_group(make, monkeypatch, sync, times):
    """Issue 2 section 7: audit.sync adds fdatasync per group."""
    calls, flush = [], logfile._flush
    monkeypatch.setattr(logfile, "_flush", lambda fd: calls.append(fd) or flush(fd))
    journal = make(sync=sync)
    journal.append([line(n) for n in range(10)])
    journal.append([line(10)])
    assert len(calls) == times


# --- rotating -----------------------------------------------------------------------------------------------------


def test_572_records_through_many_rotations_lose_none(make, path, tmp_path, monkeypatch):
    """Seed, audit: the original lost 570 of 572 records; a copy is kept of what each rotation puts aside."""
    kept, replace = [], module.replace_counting

    def keep(source, target):
        gone = replace(source, target)
        kept.append(shutil.copy(target, tmp_path / f"kept.{len(kept)}"))
        return gone

    monkeypatch.setattr(module, "replace_counting", keep)
    journal = make(limit=4096)
    records, start = [line(n, 90 + n % 200) for n in range(572)], 0
    for size in [1, 16, 64, 7] * 10:
        journal.append(records[start : start + size])
        start += size
        assert path.stat().st_size <= 4096
    assert len(kept) > 10
    assert numbers(*map(Path, kept), path) == list(range(572))
    counts = journal.counts
    assert (counts.written, counts.failures) == (572, 0)
    assert counts.rotated_away + len(both(path)) == 572
    assert both(path) == list(range(572 - len(both(path)), 572))


def test_the_file_is_full_to_the_byte_before_it_is_rotated(make, path):
    """Seed, audit: rotating past 512 KB, not at it."""
    journal = make(limit=1000 + NAMED)
    journal.append([line(n) for n in range(10)])
    assert not previous(path).exists()
    journal.append([line(10)])
    assert (numbers(previous(path)), numbers(path)) == (list(range(10)), [10])


def test_the_limit_is_512_kilobytes(make, path):
    """Seed, audit: past 512 KB."""
    journal = make()
    journal.append([line(0, 1024 - NAMED), *(line(n, 1024) for n in range(1, 512))])
    assert (path.stat().st_size, previous(path).exists()) == (LIMIT, False)
    journal.append([line(512, 1024)])
    assert (path.stat().st_size, previous(path).stat().st_size) == (1024 + NAMED, LIMIT)


def test_a_line_larger_than_the_limit_is_written_all_the_same(make, path):
    """Ours: the limit never costs a record."""
    journal = make(limit=50)
    journal.append([line(n) for n in range(3)])
    assert both(path) == [1, 2]
    assert journal.counts == Counts(written=3, failures=0, rotated_away=1)


def test_what_an_earlier_run_left_counts_towards_the_limit_and_the_rotation(make, path):
    """Ours: size and number of records come from the files, not from this run."""
    previous(path).write_bytes(chained(*(line(n) for n in range(3))))
    path.write_bytes(chained(*(line(n) for n in range(3, 12)), after=module.last_link(previous(path))))
    journal = make(limit=1000 + 2 * NAMED)
    journal.append([line(12), line(13)])
    assert both(path) == list(range(3, 14))
    assert journal.counts == Counts(written=2, failures=0, rotated_away=3)


def test_a_log_that_cannot_be_rotated_goes_on_and_says_so(make, path, said):
    """Row U04, rename: no record is lost for it; the complaint comes first and every hundredth time."""
    previous(path).mkdir()
    journal = make(limit=1000)
    journal.append([line(n) for n in range(30)])
    assert numbers(path) == list(range(30))
    assert journal.counts == Counts(written=30, failures=0, rotated_away=0)
    assert said == [f"[a2mcp] audit log not rotated at {path} (Is a directory)"]
    previous(path).rmdir()
    journal.append([line(30)])
    assert (numbers(previous(path)), numbers(path)) == (list(range(30)), [30])


@pytest.mark.timeout(20)
def test_a_fifo_in_place_of_the_older_generation_is_replaced(make, path):
    """Ours: it holds no records and does not block."""
    os.mkfifo(previous(path))
    journal = make(limit=1000)
    journal.append([line(n) for n in range(11)])
    assert both(path) == list(range(11))
    assert journal.counts == Counts(written=11, failures=0, rotated_away=0)


def test_a_group_larger_than_both_generations_keeps_its_end(make, path):
    """Ours: the log is a rolling window for one group too, and says what left it."""
    journal = make(limit=1000 + NAMED)
    journal.append([line(n) for n in range(35)])
    assert both(path) == list(range(20, 35))
    assert journal.counts == Counts(written=35, failures=0, rotated_away=20)


# --- somebody else at the file --------------------------------------------------------------------------------------


def test_a_deleted_log_is_made_anew(make, path):
    """Ours: the record after the deletion is in a file that can be read."""
    journal = make()
    journal.append([line(0)])
    path.unlink()
    journal.append([line(1)])
    assert both(path) == [1]
    assert mode(path) == 0o600


def test_a_log_moved_away_by_others_is_left_to_them(make, path, tmp_path):
    """Ours: as logrotate does it."""
    journal = make()
    journal.append([line(0)])
    path.rename(tmp_path / "theirs")
    journal.append([line(1)])
    assert (numbers(tmp_path / "theirs"), numbers(path)) == ([0], [1])


def test_a_truncated_log_is_filled_from_its_beginning(make, path):
    """Ours: as copytruncate does it; the size is counted anew."""
    journal = make(limit=1000)
    journal.append([line(n) for n in range(9)])
    os.truncate(path, 0)
    journal.append([line(n) for n in range(9, 15)])
    assert both(path) == list(range(9, 15))
    assert not previous(path).exists()


def test_a_log_replaced_by_a_link_is_refused(make, path, tmp_path, said):
    """Row U05: a link planted while running is not followed either."""
    journal = make()
    journal.append([line(0)])
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    journal.append([line(1)])
    assert not (tmp_path / "elsewhere").exists()
    assert journal.counts.failures == len(said) == 1


def test_the_path_is_looked_at_once_in_a_while_only(make, path):
    """Ours: a busy log does not pay for a look with every group."""
    clock = HandClock()
    journal = make(clock=clock, check_s=0.001)
    journal.append([line(0)])
    path.unlink()
    journal.append([line(1)])
    assert not path.exists()
    clock.t += 0.01
    journal.append([line(2)])
    assert both(path) == [2]


def test_a_log_that_was_moved_is_not_rotated_over_a_generation(make, path):
    """Ours: a rotation by somebody else between two looks does not cost the generation they put aside."""
    journal = make(clock=HandClock(), check_s=1, limit=1000 + NAMED)
    journal.append([line(n) for n in range(10)])
    path.rename(previous(path))
    path.write_bytes(line(10))
    journal.append([line(11)])
    assert both(path) == list(range(12))


# --- torn lines ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 50, 98])
def test_a_torn_last_line_does_not_swallow_the_next_record(make, path, cut):
    """Row U02; issue 2 section 7: what a crash left is followed by a fresh line."""
    torn = chained(line(0), line(1))[: 100 + NAMED + cut]
    path.write_bytes(torn)
    journal = make()
    journal.append([line(2)])
    journal.append([line(3)])
    journal.close()
    assert [n for n in both(path) if n != 1] == [0, 2, 3]
    assert path.read_bytes() == torn + b"\n" + chained(line(2), line(3), after=link_of(line(0)))


def test_a_last_line_that_lacks_only_its_line_break_is_a_record(make, path):
    """Row U02: the chain goes on from it."""
    whole = chained(line(0), line(1))
    path.write_bytes(whole[:-1])
    make().append([line(2)])
    assert path.read_bytes() == whole + chained(line(2), after=link_of(line(0), line(1)))


def test_every_prefix_of_a_group_is_mended(make, path):
    """Row U02: wherever the write was cut, whole records before and after it stay."""
    group = chained(*(line(n, 80) for n in range(3)))
    for cut in range(len(group) + 1):
        path.write_bytes(group[:cut])
        make().append([line(9)])
        # One that lacks only its line break is whole.
        whole = max(0, (cut + 1 - NAMED) // 80)
        assert numbers(path) == [*range(whole), 9]
        assert module.last_link(path).seq == whole + 1


def test_mending_counts_towards_the_limit(make, path):
    """Ours: the line break that mends is a byte like others."""
    path.write_bytes(b"x" * 100)
    make(limit=200 + NAMED).append([line(0)])
    assert path.stat().st_size == 100 + NAMED
    assert previous(path).read_bytes() == b"x" * 100


def test_a_short_write_is_continued(make, path, monkeypatch):
    """Row U04: a write that takes only a part is not a failure."""
    write = os.write
    monkeypatch.setattr(logfile.os, "write", lambda fd, data: write(fd, data[:37]))
    journal = make()
    journal.append([line(n) for n in range(5)])
    assert path.read_bytes() == chained(*(line(n) for n in range(5)))
    assert journal.counts == Counts(written=5, failures=0, rotated_away=0)


def test_a_full_file_system_loses_only_what_did_not_fit(tmp_path):
    """Row U04: short write, then EFBIG (the limit of the process on file sizes), then room again."""
    script = """
        import json, resource, sys
        from pathlib import Path
        from a2mcp.audit import chain
        from a2mcp.audit.journal import Journal
        from a2mcp.clock import SystemClock
        said = []
        journal = Journal(Path(sys.argv[1]), clock=SystemClock(), report=said.append)
        lines = [(json.dumps({"n": n, "pad": "x" * 80}) + "\\n").encode() for n in range(20)]
        first, second, *_ = map(len, chain.join(lines, chain.START))
        def limit(n):
            resource.setrlimit(resource.RLIMIT_FSIZE, (n, resource.RLIM_INFINITY))
        limit(first + chain.PREV_BYTES + second + 50)
        journal.append(lines[:5])
        first = [journal.counts.written, journal.counts.failures]
        journal.append(lines[5:7])
        limit(resource.RLIM_INFINITY)
        journal.append(lines[7:10])
        counts = journal.counts
        print(json.dumps({"first": first, "counts": [counts.written, counts.failures], "said": said}))
    """
    path = tmp_path / "a2mcp.log"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(path)],
        capture_output=True, text=True, check=True, cwd=Path(module.__file__).parents[2],
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["first"] == [2, 3]
    assert told["counts"] == [5, 5]
    assert told["said"] == [f"[a2mcp] audit record not written to {path} (File too large)"]
    assert numbers(path) == [0, 1, 7, 8, 9]


def test_the_records_before_a_failing_write_count_as_written(make, path, monkeypatch):
    """Row U04: the counter matches the file, also after a mended line."""
    path.write_bytes(b"torn")
    write, room = os.write, [250 + NAMED]

    def narrow(fd, data):
        if not room[0]:
            raise OSError(28, "No space left on device")
        done = write(fd, data[: room[0]])
        room[0] -= done
        return done

    monkeypatch.setattr(logfile.os, "write", narrow)
    journal = make()
    journal.append([line(n) for n in range(4)])
    assert journal.counts == Counts(written=2, failures=2, rotated_away=0)
    room[0] = 10_000
    journal.append([line(4)])
    assert numbers(path) == [0, 1, 4]


# --- failing ------------------------------------------------------------------------------------------------------


def test_a_missing_directory_is_reported_not_made(make, tmp_path, said):
    """Seed, troubleshooting: a log path in a directory that does not exist."""
    where = tmp_path / "missing" / "a2mcp.log"
    journal = make(where)
    journal.append([line(0)])
    assert said == [f"[a2mcp] audit record not written to {where} (No such file or directory)"]
    assert not where.parent.exists()
    where.parent.mkdir()
    journal.append([line(1)])
    assert numbers(where) == [1]
    assert journal.counts == Counts(written=1, failures=1, rotated_away=0)


def test_failures_are_reported_first_and_every_hundredth_time(make, tmp_path, said):
    """Seed, audit: first and every hundredth failure, counted per record."""
    journal = make(tmp_path / "missing" / "a2mcp.log")
    for expected, group in [(1, 1), (1, 98), (2, 1), (2, 99), (3, 16), (4, 150)]:
        journal.append([line(0)] * group)
        assert len(said) == expected
    assert journal.counts.failures == 365


def plant_directory(path):
    path.mkdir()


def plant_fifo(path):
    os.mkfifo(path)


def plant_device(path):
    path.symlink_to("/dev/full")


def plant_link(path):
    (path.parent / "target").write_text("theirs\n")
    path.symlink_to(path.parent / "target")


def plant_dangling(path):
    path.symlink_to(path.parent / "target")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("plant", [plant_directory, plant_fifo, plant_device, plant_link, plant_dangling])
def test_what_is_not_a_regular_file_is_refused_at_once(make, path, said, plant):
    """Row U05: directory, FIFO, device and links are a failure that neither blocks nor writes elsewhere."""
    plant(path)
    journal = make()
    journal.append([line(0), line(1)])
    assert journal.counts == Counts(written=0, failures=2, rotated_away=0)
    assert said[0].startswith(f"[a2mcp] audit record not written to {path} (")
    target = path.parent / "target"
    assert not target.exists() or target.read_text() == "theirs\n"


@pytest.mark.timeout(20)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_device_at_the_path_is_refused(make, said):
    """Row U05: /dev/full itself."""
    journal = make(Path("/dev/full"))
    journal.append([line(0)])
    assert said == ["[a2mcp] audit record not written to /dev/full (not a regular file)"]


def test_a_hard_link_is_the_file_itself(make, path, tmp_path):
    """Row U05: a second name of the same file changes nothing."""
    path.write_bytes(line(0))
    os.link(path, tmp_path / "second")
    make().append([line(1)])
    assert numbers(tmp_path / "second") == [0, 1]


def test_a_disk_that_does_not_confirm_is_a_failure_and_is_tried_again(make, path, said, monkeypatch):
    """Row U04, fdatasync EIO: counted, though the lines may be there; the next group is written."""
    journal = make(sync=True)
    with monkeypatch.context() as patch:

        def refuse(_fd):
            raise OSError(5, "Input/output error")

        patch.setattr(logfile, "_flush", refuse)
        journal.append([line(0), line(1)])
    assert journal.counts == Counts(written=0, failures=2, rotated_away=0)
    assert "(Input/output error)" in said[0]
    journal.append([line(2)])
    assert both(path)[-1] == 2
    assert journal.counts.written == 1


def test_failing_forever_keeps_no_descriptor(make, path):
    """Ours: a hundred failures leave as many descriptors open as none."""
    path.mkdir()
    journal = make()
    before = descriptors()
    for _ in range(100):
        journal.append([line(0)])
    assert descriptors() == before


def test_reports_go_to_stderr_and_survive_its_closing(path, capsys, monkeypatch):
    """Seed, audit: on the host's stderr; that nobody reads it harms nothing."""
    where = path.parent / "missing" / "a2mcp.log"
    Journal(where, clock=SystemClock()).append([line(0)])
    assert capsys.readouterr().err == f"[a2mcp] audit record not written to {where} (No such file or directory)\n"
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    journal = Journal(where, clock=SystemClock())
    journal.append([line(0)])
    assert journal.counts.failures == 1


def test_a_closed_journal_opens_again(make, path):
    """Ours: closing is not an end."""
    journal = make()
    for n in range(3):
        journal.append([line(n)])
        journal.close()
        journal.close()
    assert both(path) == [0, 1, 2]
