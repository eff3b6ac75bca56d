"""Verifying: whatever is done to a log, the first line that is not as it was is named, and how."""

import pytest
from chained_logs import NEW, OLD, fault_of, line, lines_of, look, report_of, write

from a2mcp.audit import chain
from a2mcp.audit.journal import previous


@pytest.fixture
def path(tmp_path):
    return tmp_path / NEW


@pytest.fixture
def log(path):
    """Four runs of a daemon, groups of one to four records, a rotation."""
    for run in range(0, 80, 20):
        write(path, *([run + k * 4 + n for n in range(1 + k % 4)] for k in range(5)))
    assert len(lines_of(previous(path))) > 15
    assert len(lines_of(path)) > 8
    return path


def test_a_log_that_nobody_touched_is_whole(log):
    """Issue, item 8."""
    report, met = look(log, hash_at(log, 0), "0" * 40)
    assert (report.fault, report.torn, report.lost, report.unchained) == (None, [], 0, 0)
    assert report.files == [OLD, NEW]
    assert report.records == len(lines_of(previous(log))) + len(lines_of(log)) == report.last - report.first + 1
    assert report.hash == hash_at(log, -1)
    assert met == {hash_at(log, 0)}


def hash_at(path, at):
    return chain.read(lines_of(path)[at][:-1]).hash.decode()


# --- what is done to a log -------------------------------------------------------------------------------------------


def each(log):
    """Every line: its file, its number from 0, the name and line that is told for it."""
    for file in (previous(log), log):
        for at in range(len(lines_of(file))):
            yield file, at


def told(log, change):
    """Do something to each line in turn; the name, number and fault of each."""
    for file, at in list(each(log)):
        whole = file.read_bytes()
        lines = lines_of(file)
        if change(lines, at) is not None:
            file.write_bytes(b"".join(lines))
            yield file, at, fault_of(log)
            file.write_bytes(whole)
    assert fault_of(log) is None, "what was put back is whole again"


@pytest.mark.parametrize("bit", [1, 0x20, 0x80])
def test_any_byte_that_is_changed_is_found_in_its_line(log, bit):
    """Issue, item 8: altered, also to what is no JSON or no UTF-8; the first and last lines of files, and one between."""
    for place in range(bit % 3, 220, 3):

        def change(lines, at, place=place):
            text = bytearray(lines[at])
            if place >= len(text) - 1 or text[place] ^ bit == 10 or at not in {0, 5, len(lines) - 1}:
                return None
            text[place] ^= bit
            lines[at] = bytes(text)
            return lines

        for file, at, fault in told(log, change):
            assert fault == (file.name, at + 1, "altered"), place


def test_a_line_that_is_removed_is_found_where_it_stood(log):
    """Issue, item 8: removed. All but the last, which only a daemon, or a hash that was noted, can miss."""
    last = (log, len(lines_of(log)) - 1)
    for file, at, fault in told(log, lambda lines, at: [lines.pop(at)]):
        following = (file.name, at + 1) if at < len(lines_of(file)) else (NEW, 1)
        assert fault == (None if (file, at) == last else (*following, "removed"))


def test_lines_that_are_removed_are_counted(log):
    """Issue, item 8."""
    lines = lines_of(log)
    log.write_bytes(b"".join(lines[:3] + lines[7:]))
    number = chain.read(lines[3][:-1]).seq
    text = f"4 records, {number} to {number + 3}, are not there, and stood before this line."
    assert report_of(log).fault.text == text


@pytest.mark.parametrize("what", ["no hash", "copy", "older copy", "forged", "forged with what follows"])
def test_a_line_that_is_inserted_is_named(log, what):
    """Issue, item 8: inserted, with whatever place the forger gave it."""

    def change(lines, at):
        link = chain.read(lines[at][:-1]).link
        new = {
            "no hash": [line(900)],
            "copy": [lines[at]],
            "older copy": [lines[max(0, at - 3)]],
            "forged": chain.join([line(901)], link),
            "forged with what follows": chain.join([line(902), line(903), line(904)], link),
        }[what]
        lines[at + 1 : at + 1] = new
        return lines

    last = (log, len(lines_of(log)) - 1)
    for file, at, fault in told(log, change):
        # Behind the last line a forger can go on as the daemon would. A running one knows that it has not.
        blind = (file, at) == last and what.startswith("forged")
        assert fault == (None if blind else (file.name, at + 2, "inserted"))


@pytest.mark.parametrize(("take", "put"), [(0, 1), (0, 4), (4, 0), (2, 0)])
def test_lines_in_another_order_are_found_at_the_first_that_moved(log, take, put):
    """Issue, item 8: reordered."""

    def change(lines, at):
        if at + max(take, put) >= len(lines):
            return None
        lines.insert(at + put, lines.pop(at + take))
        return lines

    for file, at, fault in told(log, change):
        assert fault == (file.name, at + 1, "reordered")


def test_a_line_that_is_replaced_together_with_its_hash_is_one_of_the_two_that_are_named(log):
    """Ours: one of two neighbours was changed, and no hash can say which; the text says so."""

    def change(lines, at):
        if at == 0:
            return None
        lines[at] = chain.join([line(990)], chain.read(lines[at - 1][:-1]).link)[0]
        return lines

    for file, at, _ in list(told(log, change)):
        lines = lines_of(file)
        if at == len(lines) - 1:
            continue
        whole = file.read_bytes()
        change(lines, at)
        file.write_bytes(b"".join(lines))
        fault = report_of(log).fault
        file.write_bytes(whole)
        named = f"{fault.file}:{fault.line} {fault.text}"
        assert fault.kind == "altered"
        assert f"{file.name}:{at + 1} " in named


def test_an_older_file_that_is_gone_cannot_be_missed_but_one_in_between_can(log, path):
    """Ours: a log is a window, so its beginning may be anywhere where a file began."""
    older = previous(log).read_bytes()
    previous(log).unlink()
    report = report_of(log)
    assert report.fault is None
    assert report.first > 1
    previous(log).write_bytes(b"".join(older.splitlines(keepends=True)[:-2]))
    assert fault_of(log) == (NEW, 1, "removed")


def test_a_log_that_was_deleted_while_no_daemon_ran_begins_anew(log):
    """Issue, item 8: the older file still has what the newer no longer follows."""
    forged = chain.join([line(1), line(2)], chain.START)
    log.write_bytes(chain.naming(forged[0], chain.START.hash) + forged[1])
    assert fault_of(log) == (NEW, 1, "removed")
    assert "A new chain begins here" in report_of(log).fault.text
