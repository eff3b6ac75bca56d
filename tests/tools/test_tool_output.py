"""Text within its cap: both ends stay, the gap says what is missing."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from a2mcp.tools.lines import number
from a2mcp.tools.output import clip_middle, human_size


@given(st.text(max_size=300), st.integers(1, 400))
def test_a_clipped_text_keeps_both_ends_and_splits_no_character(text, limit):
    """Issue 2, section 5: cut in the middle, characters never split."""
    clipped = clip_middle(text, limit)
    size = len(text.encode("utf-8", "replace"))
    if size <= limit:
        assert clipped == text
        return
    head, _, tail = clipped.partition("[… ")
    tail = tail.partition(" …]\n")[2]
    assert text.startswith((head.rstrip("\n"), head))
    assert text.endswith(tail)
    assert len(tail.encode()) <= limit


def test_the_gap_counts_what_is_missing_and_names_the_call():
    """Issue 2, section 5: what is missing and the call that reads it."""
    text = "".join(f"{n}\n" for n in range(1000))
    clipped = clip_middle(text, 400, read_with="jobs output")
    head, note, tail = clipped.split("[… ")[0], clipped.split("[… ")[1].split(" …]\n")[0], clipped.split("…]\n")[1]
    missing = text.removeprefix(head).removesuffix(tail)
    assert head + missing + tail == text
    size = human_size(len(missing))
    assert note == f"{size}, {missing.count(chr(10))} line ends not shown here; read it with jobs output"


def test_sizes_are_written_for_people():
    """Ours."""
    sizes = [human_size(size) for size in (0, 1023, 1536, 2 << 30, 1 << 63)]
    assert sizes == ["0 bytes", "1023 bytes", "1.5 KiB", "2.0 GiB", "8.0 EiB"]


LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=80)


@given(LINES, st.integers(1, 2000))
@example(["x"] * 600, 599)
@example(["x"] * 600, 600)
@example([""] * 2000, 1)
def test_numbered_lines_are_all_there_or_named_as_missing(lines, limit):
    """Issue 2, section 5: lines shown of total, and the call for the rest; also where there are more lines than bytes."""
    numbered = number(lines, 5, limit, "/f")
    assert len(numbered.body.encode()) <= limit + 1000
    rows = {}
    missing = range(0)
    for row in numbered.body.split("\n") if lines else ():
        if row.startswith("[… "):
            start, count = int(row.split('"offset": ')[1].split(",")[0]), int(row.split('"limit": ')[1].split("}")[0])
            missing = range(start, start + count)
        else:
            at, _, line = row.partition("\t")
            rows[int(at)] = line
    assert sorted([*rows, *missing]) == list(range(5, 5 + len(lines)))
    assert all(lines[at - 5] == line or "characters of this line not shown" in line for at, line in rows.items())
