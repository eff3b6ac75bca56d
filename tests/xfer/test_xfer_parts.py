"""The parts of the file server by themselves: paths, ranges, names, and the workers that wait for disks."""

from __future__ import annotations

import errno
import os
import threading
from types import SimpleNamespace

import pytest
from files_edge import until
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.errors import Busy, FileRefusal
from a2mcp.http.server.parked import Parked
from a2mcp.http.server.workers import Workers
from a2mcp.protocol.response import Response
from a2mcp.xfer import conditions, listing, ranges, target
from a2mcp.xfer.download import disposition
from a2mcp.xfer.faults import refusal_of

NAMES = st.binary(min_size=1, max_size=40).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..")
)


@given(st.lists(NAMES.map(os.fsdecode), min_size=1, max_size=5).map(tuple), st.booleans())
def test_every_name_has_an_address_that_leads_back_to_it(parts, folder):
    """Ours: `href` and `split` are each other's inverse, for any bytes."""
    address = target.href(parts, folder=folder)
    assert address.isascii()
    assert address.isprintable()
    assert not set(address) & set("\"'<> \\?#&")
    assert target.split(address) == (parts, folder)


@given(st.text(st.characters(max_codepoint=255)))
def test_any_path_is_components_or_a_refusal(raw):
    """Issue: no encoding trick; nothing but 400 is raised."""
    try:
        parts, _ = target.split("/xfer/" + raw)
    except FileRefusal as refusal:
        assert refusal.answer == 400  # noqa: PT017  # Most paths are fine.
    else:
        for part in parts:
            assert part not in ("", ".", "..")
            assert not set(part) & {"/", "\0"}


SPECS = st.one_of(
    st.tuples(st.integers(0, 300), st.integers(0, 300)).map(lambda pair: f"{pair[0]}-{pair[1]}"),
    st.integers(0, 300).map(lambda start: f"{start}-"),
    st.integers(0, 300).map(lambda length: f"-{length}"),
)


@given(st.lists(SPECS, min_size=1, max_size=70), st.integers(0, 250))
def test_ranges_cover_what_was_asked_once_and_nothing_else(specs, size):
    """Row X11; RFC 9110 §14.1.2, by a model that looks at each byte."""
    asked: set[int] = set()
    broken = False
    for spec in specs:
        first, _, last = spec.partition("-")
        if first and last and int(last) < int(first):
            broken = True
        elif not first:
            asked |= set(range(max(0, size - int(last)), size))
        else:
            asked |= set(range(int(first), min(int(last or size), size - 1) + 1))
    header = "bytes=" + ",".join(specs)
    if len(specs) > ranges.MOST:
        assert ranges.parse(header, size) == ()
    elif broken or not asked:
        with pytest.raises(ranges.Unsatisfiable):
            ranges.parse(header, size)
    else:
        pieces = ranges.parse(header, size)
        sent = [byte for piece in pieces for byte in range(piece.start, piece.end)]
        assert sorted(sent) == sorted(asked)


@pytest.mark.parametrize("digits", ["9" * 19, "9" * 5000, "0" * 5000 + "9999"])
def test_a_range_may_end_beyond_any_file(digits):
    """Row X11: an end is cut to the file's, however it is written (RFC 9110 §14.1.2)."""
    whole = (ranges.Range(0, 10),)
    assert ranges.parse(f"bytes=0-{digits}", 10) == whole
    assert ranges.parse(f"bytes=-{digits}", 10) == whole
    with pytest.raises(ranges.Unsatisfiable):
        ranges.parse(f"bytes={digits}-", 10)


@given(st.text(max_size=60))
def test_any_name_makes_a_header(name):
    """Security table §0 row 13; RFC 6266: no name ends the header or leaves ASCII."""
    written = disposition(name) if not any("\ud800" <= c <= "\udfff" for c in name) else disposition("x")
    assert written.isascii()
    assert written.isprintable()
    assert written.count('"') == 2


@given(st.lists(st.text(min_size=1, max_size=10), min_size=2, max_size=20))
def test_the_natural_order_is_one(names):
    """Ours: any names can be compared, digits of any script too."""
    assert sorted(names, key=listing.natural) == sorted(names, key=listing.natural)


def test_numbers_in_names_count_as_numbers():
    """As dufs sorts, §6.3."""
    assert sorted(["a10", "a9", "B", "a", "10", "9"], key=listing.natural) == ["9", "10", "a", "a9", "a10", "B"]


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (errno.ENOENT, 404),
        (errno.EXDEV, 404),
        (errno.EACCES, 403),
        (errno.EROFS, 403),
        (errno.ENOSPC, 507),
        (errno.EDQUOT, 507),
        (errno.EFBIG, 413),
        (errno.EMFILE, 503),
        (errno.EIO, 500),
        (None, 500),
    ],
)
def test_a_fault_of_the_file_system_has_a_status_and_names_no_path(number, status):
    """Row X10: 4xx or 507; ours: where things are is nobody's business."""
    error = OSError("odd") if number is None else OSError(number, os.strerror(number), "/secret/place")
    refusal = refusal_of(error)
    assert refusal.answer == status
    assert "/secret" not in refusal.text


# --- workers ----------------------------------------------------------------------------------------------------------


def test_a_file_from_the_far_future_has_a_date_all_the_same():
    """Ours: a date has four digits of a year; a file system may have more."""
    found = SimpleNamespace(st_mode=0o100644, st_size=5, st_mtime=3e11, st_mtime_ns=300_000_000_000 * 10**9)
    assert dict(conditions.validators(found).headers)["Last-Modified"] == "Fri, 31 Dec 9999 23:59:59 GMT"
    assert listing.entry_of("later", found).mtime // 1000 == conditions.LATEST_S


def test_workers_are_few_and_what_waits_has_a_bound():
    """Issue: a file system that hangs holds these threads, and nothing else."""
    workers = Workers("Test", threads=2, waiting=3)
    gate = threading.Event()
    before = threading.active_count()
    for _ in range(5):
        workers.do(lambda: gate.wait(10) and None)
    until(lambda: threading.active_count() == before + 2, "two threads work")
    with pytest.raises(Busy):
        workers.answer(Parked(), lambda: Response(200))
    assert not workers.settle(0)
    gate.set()
    assert workers.settle(10)


def test_a_job_that_breaks_ends_no_thread_and_is_answered(caplog):
    """Ours: the rim of the workers."""
    workers = Workers("Test", threads=1)
    parked = Parked()
    workers.answer(parked, lambda: Response(1 // 0))
    assert workers.settle(10)
    assert parked.done
    done = threading.Event()
    workers.do(done.set)
    assert done.wait(10)
    assert "ZeroDivisionError" in caplog.text
