"""What verifying says of a log that nobody has changed: crashes, full disks, older versions, rotations meanwhile."""

import os
import threading

import pytest
from chained_logs import NEW, OLD, fault_of, line, lines_of, report_of, write

from a2mcp.audit import chain, verify
from a2mcp.audit.journal import Journal, last_link, previous
from a2mcp.clock import SystemClock


@pytest.fixture
def path(tmp_path):
    return tmp_path / NEW


@pytest.mark.parametrize("keep", [1, 40, 150])
def test_a_torn_line_is_named_and_breaks_nothing(path, keep):
    """Issue, item 8: a crash in the middle of a record, and a restart."""
    write(path, [0, 1])
    torn = chain.join([line(2)], last_link(path))[0][:keep]
    with path.open("ab") as file:
        file.write(torn)
    assert (report_of(path).fault, [str(place) for place in report_of(path).torn]) == (None, [f"{NEW}:3"])
    write(path, [3], [4])
    report = report_of(path)
    assert (report.fault, report.records, [str(place) for place in report.torn]) == (None, 4, [f"{NEW}:3"])


def test_a_torn_line_at_the_end_of_the_older_file_breaks_nothing(path):
    """Ours: full to the byte and torn, so that the next record begins a file."""
    write(path, [0, 1])
    path.write_bytes(path.read_bytes() + b'{"ts":"2026')
    write(path, [2], limit=path.stat().st_size + 10)
    report = report_of(path)
    assert (report.fault, report.records, [str(place) for place in report.torn]) == (None, 3, [f"{OLD}:3"])


def test_a_torn_line_hides_no_removal(path):
    """Ours: what is in the place of a record is altered, whatever it looks like."""
    write(path, [0, 1, 2])
    write(path, [3])
    lines = lines_of(path)
    path.write_bytes(b"".join((*lines[:2], lines[2][:50] + b"\n", lines[3])))
    assert fault_of(path) == (NEW, 3, "altered")


def test_what_could_not_be_written_is_counted_and_breaks_nothing(path):
    """Issue, item 8: counted failures, such as of a full disk."""
    journal = Journal(path, clock=SystemClock(), check_s=0, report=lambda _text: None)
    journal.append([line(0)])
    path.rename(path.with_name("aside"))
    path.mkdir()
    journal.append([line(1), line(2)])
    path.rmdir()
    path.with_name("aside").rename(path)
    journal.append([line(3)])
    journal.close()
    report = report_of(path)
    assert (report.fault, report.records, report.lost, report.last) == (None, 2, 2, 4)


def test_records_of_an_older_version_are_counted_and_nothing_is_said_of_them(path):
    """Issue, item 8: before the chain begins, in either file."""
    previous(path).write_bytes(line(0) + line(1) + b"torn\n")
    path.write_bytes(line(2))
    report = report_of(path)
    assert (report.fault, report.records, report.unchained) == (None, 0, 3)
    write(path, [3, 4])
    report = report_of(path)
    assert (report.fault, report.records, report.unchained) == (None, 2, 3)
    assert [str(place) for place in report.torn] == [f"{OLD}:3"]


def test_records_without_a_hash_are_faults_once_the_chain_has_begun(path):
    """Issue, item 8: whoever takes the hashes away does not make an older version of it."""
    write(path, [0, 1, 2])
    write(path, [3, 4])
    lines = lines_of(path)
    bare = [text[: text.index(b',"seq"')] + b"}\n" for text in lines]
    path.write_bytes(b"".join(bare[:3] + lines[3:]))
    assert fault_of(path) == (NEW, 1, "inserted")
    path.write_bytes(b"".join(bare[:2] + lines[2:]))
    assert fault_of(path) == (NEW, 1, "altered")
    path.write_bytes(b"".join(lines[:4] + bare[4:]))
    assert fault_of(path) == (NEW, 5, "inserted")


# --- reading ---------------------------------------------------------------------------------------------------------


def test_no_log_is_no_fault(path):
    """Ours: a daemon that was never called has none."""
    report = report_of(path)
    assert (report.fault, report.files, report.records) == (None, [], 0)


@pytest.mark.parametrize("which", [lambda path: path, previous])
@pytest.mark.parametrize("plant", ["link", "fifo", "directory", "device"])
@pytest.mark.timeout(20)
def test_what_is_no_file_of_the_daemons_is_refused_at_once(path, which, plant):
    """Issue, item 8: a link is not followed, for the daemon does not either; nothing blocks."""
    write(path.with_name("other"), [0])
    place = which(path)
    {
        "link": lambda: place.symlink_to(path.with_name("other")),
        "fifo": lambda: os.mkfifo(place),
        "directory": place.mkdir,
        "device": lambda: place.symlink_to("/dev/full"),
    }[plant]()
    with pytest.raises(OSError, match=r"symbolic links|not a regular file"):
        report_of(path)


def test_lines_of_any_length_take_bounded_memory(path):
    """Ours: somebody's long line is one line that does not fit."""
    write(path, [0, 1])
    lines = lines_of(path)
    path.write_bytes(lines[0] + b"x" * 3_000_000 + b"\n" + lines[1])
    assert fault_of(path) == (NEW, 2, "inserted")


def test_a_log_that_rotates_twice_while_it_is_opened_is_read_as_it_stood(path, monkeypatch):
    """Issue, item 8: two rotations between opening one file and the other."""
    write(path, *([n] for n in range(9)), limit=900)
    journal = Journal(path, clock=SystemClock(), limit=900)
    opened, real = [], verify.open_to_read

    def rotating(which):
        file = real(which)
        opened.append(which)
        if len(opened) == 1:
            journal.append([line(100 + n) for n in range(10)])
        return file

    monkeypatch.setattr(verify, "open_to_read", rotating)
    report = report_of(path)
    journal.close()
    assert (report.fault, report.last) == (None, 19)
    assert opened[:2] == [path, previous(path)]
    assert len(opened) == 4


def test_a_log_that_is_written_meanwhile_is_whole_at_every_moment(path):
    """Issue, item 8: many rotations during many looks."""
    ending = threading.Event()

    def fill():
        journal = Journal(path, clock=SystemClock(), limit=3000)
        n = 0
        while not ending.is_set():
            journal.append([line(n + k) for k in range(1 + n % 7)])
            n += 7
        journal.close()

    writer = threading.Thread(target=fill)
    writer.start()
    try:
        reports = [report_of(path)]
        while reports[-1].last < 5_000:
            reports.append(report_of(path))
    finally:
        ending.set()
        writer.join()
    assert [report.fault for report in reports if report.fault] == []
    assert len(reports) > 5


def test_copies_may_begin_anywhere(path):
    """Ours: an archive was begun when somebody thought of it; what is in it is a chain all the same."""
    write(path, range(9))
    lines = lines_of(path)[2:]
    path.write_bytes(b"".join(lines))
    with verify.opened_files([path]) as files:
        report, _ = verify.verify(files, copies=True)
        assert (report.fault, report.records) == (None, len(lines))
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    with verify.opened_files([path]) as files:
        assert verify.verify(files, copies=True)[0].fault.line == 3
