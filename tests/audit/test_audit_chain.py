"""The chain as the journal writes it: numbers and hashes that go on over rotations, crashes, failures and restarts."""

import json
import os
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from a2mcp.audit import chain, logfile
from a2mcp.audit import journal as module
from a2mcp.audit.chain import START, Link
from a2mcp.audit.journal import TAIL, last_link, previous
from a2mcp.audit.record import done_line, start_line

TS = "2026-10-16T04:35:23.000Z"


def line(n):
    return start_line(TS, f"call-{n}", "s1", "bash", b'{"command":"echo %d"}' % n)


def rows(path):
    return [json.loads(text) for text in path.read_bytes().splitlines()]


def seqs(path):
    return [row["seq"] for row in rows(path)]


def follow_each_other(*texts):
    """Whether lines are a chain that begins with what the first of them names."""
    links = [chain.read(text) for text in texts]
    before = [links[0].prev, *(link.hash for link in links)]
    return all(link.follows(last) for link, last in zip(links, before, strict=False))


def test_each_line_has_a_number_and_a_hash_of_the_one_before(make, path):
    """Issue, item 8: each record carries a hash chained to the one before."""
    make().append([line(n) for n in range(5)])
    texts = path.read_bytes().splitlines()
    assert seqs(path) == [1, 2, 3, 4, 5]
    assert [list(row)[6:] for row in rows(path)] == [["seq", "prev", "hash"], *[["seq", "hash"]] * 4]
    assert rows(path)[0]["prev"] == START.hash.decode()
    assert follow_each_other(*texts)


def test_what_was_written_before_is_as_it_was(make, path):
    """Ours: what is added is added at the end, so that whoever reads a record finds all that was there."""
    lines = [line(0), done_line(TS, "call-0", None, "bash", b"{}", is_error=False, client="c", ended="aborted")]
    make().append(lines)
    for text, before in zip(path.read_bytes().splitlines(), lines, strict=True):
        assert text.startswith(before.removesuffix(b"}\n") + b',"seq":')


@pytest.mark.skipif(shutil.which("b2sum") is None, reason="no b2sum here")
def test_a_hash_can_be_made_with_tools_of_everybody(make, path):
    """docs/reference/audit-records.md: its script prints the same hash twice."""
    page = (Path(chain.__file__).parents[2] / "docs/reference/audit-records.md").read_text("utf-8")
    script = page.split("```sh\n")[1].split("```")[0]
    journal = make()
    journal.append([start_line(TS, "c", None, "x", b'{"hash":1,"a":{"b":2,"hash":"0"}}'), line(1)])
    make().append([line(2)])
    for first in (1, 2):
        told = subprocess.run(
            ["bash", "-c", script], cwd=path.parent, capture_output=True, text=True, check=True
        ).stdout
        made, there = told.splitlines()
        assert made.split()[0] == there == rows(path)[1]["hash"]
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[first:]))


def test_a_new_file_begins_with_the_last_hash_of_the_old(make, path):
    """Issue, item 8."""
    make(limit=900).append([line(n) for n in range(7)])
    old, new = rows(previous(path)), rows(path)
    assert new[0]["prev"] == old[-1]["hash"]
    assert new[0]["seq"] == old[-1]["seq"] + 1
    assert follow_each_other(*previous(path).read_bytes().splitlines(), *path.read_bytes().splitlines())


def test_every_new_file_of_many_rotations_begins_so(make, path, tmp_path, monkeypatch):
    """Issue, item 8: a copy is kept of what each rotation puts aside."""
    kept, replace = [], module.replace_counting

    def keep(source, target):
        gone = replace(source, target)
        kept.append(shutil.copy(target, tmp_path / f"kept.{len(kept)}"))
        return gone

    monkeypatch.setattr(module, "replace_counting", keep)
    journal = make(limit=2000)
    for n in range(0, 300, 3):
        journal.append([line(n), line(n + 1), line(n + 2)])
    texts = [text for file in (*kept, path) for text in Path(file).read_bytes().splitlines()]
    assert len(kept) > 20
    assert [json.loads(text)["seq"] for text in texts] == list(range(1, 301))
    assert follow_each_other(*texts)


def test_a_restart_goes_on_from_the_last_whole_line(make, path):
    """Issue, item 8: after kill -9, from the last whole line; the first line behind says what it goes on from."""
    make().append([line(0), line(1)])
    whole = path.read_bytes()
    path.write_bytes(whole + chain.join([line(2)], Link(2, b"f" * 40))[0][:-30])
    make().append([line(3)])
    before, torn, after = path.read_bytes()[len(whole.splitlines(keepends=True)[0]) :].splitlines()
    assert chain.read(torn) is None
    assert chain.read(after).prev == chain.read(before).hash
    assert chain.read(after).seq == 3


def test_a_restart_after_a_rotation_goes_on_from_the_older_file(make, path):
    """Ours: killed between the rename and the first record of the new file."""
    make().append([line(0), line(1)])
    path.rename(previous(path))
    for empty in (False, True):
        if empty:
            path.touch()
        assert make().last == last_link(previous(path))
    make().append([line(2)])
    assert seqs(path) == [3]
    assert rows(path)[0]["prev"] == rows(previous(path))[-1]["hash"]


def test_no_start_reads_a_whole_log(make, path, monkeypatch):
    """Issue, item 8: only its end."""
    journal = make(limit=100 * TAIL)
    journal.append([line(n) for n in range(3000)])
    read, sizes = os.pread, []
    monkeypatch.setattr(logfile.os, "pread", lambda fd, size, at: sizes.append(size) or read(fd, size, at))
    assert path.stat().st_size > 8 * TAIL
    assert make().last.seq == 3000
    assert sizes == [TAIL]


def test_records_of_an_older_version_are_left_as_they_are(make, path):
    """Issue, item 8: the chain begins behind them."""
    old = b"".join(line(n) for n in range(3))
    path.write_bytes(old)
    make().append([line(3)])
    assert path.read_bytes().startswith(old)
    last = rows(path)[-1]
    assert (last["seq"], last["prev"]) == (1, START.hash.decode())


def test_rubbish_at_the_end_does_not_hide_the_last_record(make, path):
    """Ours: what is no record is passed over on the way back."""
    make().append([line(0)])
    with path.open("ab") as file:
        file.write(b'{"x":1}\n\xff\xfe\n' + b"[" * 5000 + b'\n{"seq":9,"hash":"' + b"0" * 40)
    assert make().last == Link(1, rows_hash(path, 0))


def rows_hash(path, at):
    return chain.read(path.read_bytes().splitlines()[at]).hash


def test_what_looks_like_a_place_inside_the_arguments_is_none(make, path):
    """Ours: a caller writes the arguments; a line that is torn behind them must not pass for a whole one."""
    forged = b'{"a":{"b":1,"seq":7,"hash":"%b"}' % (b"a" * 40)
    text = start_line(TS, "c", None, "bash", forged + b"}")
    torn = text[: text.index(b'"}') + 2]
    assert torn.endswith(forged)
    path.write_bytes(torn)
    assert make().last == START


# --- failures -----------------------------------------------------------------------------------------------------


def test_the_number_of_a_lost_record_is_given_to_no_other(make, path, tmp_path):
    """Issue, item 8 and row U04: the hole in the numbers says how many were lost, and the chain goes on over it."""
    journal = make()
    journal.append([line(0)])
    path.rename(tmp_path / "aside")
    path.mkdir()
    journal.append([line(1), line(2)])
    path.rmdir()
    (tmp_path / "aside").rename(path)
    journal.append([line(3)])
    assert seqs(path) == [1, 4]
    assert follow_each_other(*path.read_bytes().splitlines())


@pytest.mark.parametrize("room", range(0, 700, 23))
def test_wherever_a_disk_is_full_the_chain_goes_on_from_what_is_there(make, path, monkeypatch, room):
    """Row U04: short writes at every place of a group, with a torn line before it."""
    path.write_bytes(b"torn")
    write, left = os.write, [room]

    def narrow(fd, data):
        if not left[0]:
            raise OSError(28, "No space left on device")
        done = write(fd, data[: left[0]])
        left[0] -= done
        return done

    journal = make()
    with monkeypatch.context() as patch:
        patch.setattr(logfile.os, "write", narrow)
        journal.append([line(n) for n in range(4)])
    journal.append([line(4), line(5)])
    found = [link for text in path.read_bytes().splitlines() if (link := chain.read(text))]
    assert [link.seq for link in found][-2:] == [5, 6]
    assert all(later.follows(earlier.hash) for earlier, later in pairwise(found))
    assert found[0].follows(START.hash)
    assert journal.counts.written == len(found)
    assert journal.counts.failures == 6 - len(found)
    assert journal.last == found[-1].link == make().last


def test_a_disk_that_does_not_confirm_leaves_the_chain_whole(make, path, monkeypatch):
    """Row U04, fdatasync EIO: the records count as failures and are in the file."""
    journal = make(sync=True)
    journal.append([line(0)])
    with monkeypatch.context() as patch:
        patch.setattr(logfile, "_flush", lambda _fd: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        journal.append([line(1)])
    journal.append([line(2)])
    assert seqs(path) == [1, 2, 3]
    assert follow_each_other(*path.read_bytes().splitlines())


# --- somebody else at the file --------------------------------------------------------------------------------------


def cut(path):
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def replace(path):
    path.write_bytes(b"".join(chain.join([line(8), line(9)], START)))


def add(path):
    with path.open("ab") as file:
        file.write(chain.join([line(9)], last_link(path))[0])


@pytest.mark.parametrize("change", [cut, replace, add, os.unlink])
def test_a_log_that_somebody_changed_is_told_and_continued_from_what_was_written(make, path, said, change):
    """Issue, item 8: a tail that is cut off is noticed while the daemon runs."""
    journal = make()
    journal.append([line(0), line(1), line(2)])
    last = journal.last
    change(path)
    journal.append([line(3)])
    assert said[0].startswith(f"[a2mcp] audit log changed by somebody else at {path} (it ends with record ")
    found = chain.read(path.read_bytes().splitlines()[-1])
    assert (found.seq, found.prev) == (4, last.hash)
    journal.append([line(4)])
    assert len(said) == 1


def test_a_log_that_is_cut_before_the_first_call_is_noticed(make, path, said):
    """Ours: what the chain goes on from is read when the daemon starts, not at its first record."""
    make().append([line(0), line(1)])
    journal = make()
    assert journal.last.seq == 2
    cut(path)
    journal.append([line(2)])
    assert said[0].endswith("(it ends with record 1, not 2)")


def test_what_only_changes_the_mode_changes_no_record(make, path, said):
    """Ours: chmod is mended, not told."""
    journal = make()
    journal.append([line(0)])
    path.chmod(0o644)
    journal.append([line(1)])
    assert said == []
    assert follow_each_other(*path.read_bytes().splitlines())
