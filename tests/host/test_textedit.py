"""Literal replacements: where they match, what they leave alone, and what they say when they do not."""

from __future__ import annotations

import itertools
import re
import subprocess

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from a2mcp.errors import BadArgument, ToolError
from a2mcp.host import textdiff
from a2mcp.host.nearest import nearest
from a2mcp.host.textedit import Replacement, View, apply, apply_to_view, plan


def edited(source, *edits):
    view = View(source)
    return apply(view, plan(view, [Replacement(*edit) for edit in edits], "/f"))


def refused(source, *edits):
    with pytest.raises(ToolError) as caught:
        edited(source, *edits)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "old", "new", "expected"),
    [
        ("a\r\nb\r\nc\r\n", "b\nc", "x\ny\nc", "a\r\nx\r\ny\r\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc\n", "a\nc\n", "a\r\nc\r\n"),
        ("a\r\nb\nc\n", "a\nb\n", "A\nB\n", "A\r\nB\nc\n"),
        ("a\r\nb\n", "b", "b\nc", "a\r\nb\nc\n"),
        ("a\rb\rc", "b\nc", "x\ny\nz", "a\rx\ry\rz"),
        ("10%\r20%\ndone\n", "20%\n", "30%\n", "10%\r30%\ndone\n"),
        ("a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
        ("a\nb", "b", "b\nc", "a\nb\nc"),
        ("a", "a", "a\r\nb", "a\nb"),
        ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
        ("é😀\r\n", "😀", "日", "é日\r\n"),
        ("one\ntwo\n", "two\n", "", "one\n"),
    ],
)
def test_line_ends_follow_the_lines_they_replace(source, old, new, expected):
    """Row F09: CRLF, CR, mixed, no final newline."""
    assert edited(source, (old, new)) == expected


def test_edits_are_matched_against_the_text_before_all_of_them():
    """Issue 2, section 5 (ours): two names can be swapped in one call."""
    assert edited("left right\n", ("left", "right"), ("right", "left")) == "right left\n"


def test_neighbouring_edits_and_shared_context_do_not_clash():
    """Issue 2, section 5 (ours): edits that only share unchanged text are apart."""
    assert edited("a\nb\nc\n", ("a\n", "a\nA\n"), ("b", "B")) == "a\nA\nB\nc\n"
    assert edited("a\nkeep\nc\n", ("a\nkeep", "x\nkeep"), ("keep\nc", "keep\ny")) == "x\nkeep\ny\n"


def test_edits_that_change_other_parts_of_what_they_share_are_apart_in_any_order():
    """Ours: the first to match may be the last to change."""
    for edits in itertools.permutations([("aaa bbb ccc", "aaa bbb CCC"), ("bbb", "BBB"), ("aaa b", "AAA b")]):
        assert edited("aaa bbb ccc\n", *edits) == "AAA BBB CCC\n"


def test_edits_of_the_same_text_are_refused_together():
    """Issue 2, section 5: all edits or none."""
    said = refused("one two three\n", ("one two", "x"), ("two three", "y"))
    assert "edits[0] and edits[1] change the same text" in said


def test_several_places_are_counted_and_named():
    """Issue 2, section 5: several places give count and lines."""
    said = refused("x = 1\ny\nx = 1\nx = 1\n", ("x = 1", "x = 2"))
    assert "3 times, on lines 1, 3, 4" in said
    assert '"all": true' in said


def test_places_that_overlap_are_several_places():
    """Issue 2, section 5 (ours): aa is twice in aaa."""
    assert "2 times" in refused("aaa\n", ("aa", "b"))


def test_all_changes_every_place():
    """Issue 2, section 5: all."""
    assert edited("x\r\ny\nx\n", ("x", "z", True)) == "z\r\ny\nz\n"


def test_empty_and_unchanging_edits_are_refused_by_field():
    """Issue 2, section 5: a bad argument names its field."""
    for edit, field in ((("", "x"), "edits[0].oldText"), (("a", "a"), "edits[0].newText")):
        with pytest.raises(BadArgument) as caught:
            edited("a\n", edit)
        assert caught.value.field == field


texts = st.text(st.sampled_from("ab \r\n\té😀"), max_size=60)


@given(before=texts, old=texts, new=texts, after=texts)
def test_everything_outside_the_place_stays_identical(before, old, new, after):
    """Row F09: bytes outside the hunk identical."""
    source = before + old + after
    view = View(source)
    try:
        splices = plan(view, [Replacement(old, new)], "/f")
    except ToolError:
        return
    (splice,) = splices
    result = apply(view, splices)
    start, end = view.origin(splice.start), view.origin(splice.end)
    assert result.startswith(source[:start])
    assert result.endswith(source[end:])
    assert view.text[splice.start : splice.end] in old.replace("\r\n", "\n").replace("\r", "\n") or "\r" in old


flat_texts = st.text(st.sampled_from("abcdefgh \n\té😀"), max_size=40)


@given(before=flat_texts, old=flat_texts.filter(bool), new=flat_texts, after=flat_texts, data=st.data())
def test_the_result_is_what_plain_replacement_of_normalised_text_gives(before, old, new, after, data):
    """Issue 2, section 5: literal, matched in a newline-normalised view."""
    flat = before + old + after
    assume(old != new)

    def dressed(text):
        return "".join(data.draw(st.sampled_from(["\n", "\r\n"])) if char == "\n" else char for char in text)

    try:
        result = edited(dressed(flat), (dressed(old), dressed(new)))
    except ToolError:
        assert flat.find(old) != flat.rfind(old)
        return
    assert result.replace("\r\n", "\n") == before + new + after


@given(
    lines=st.lists(st.sampled_from(["a", "b", "c", "", "dd"]), min_size=1, max_size=30),
    final=st.booleans(),
    edits=st.lists(st.tuples(st.integers(0, 29), st.sampled_from(["x", "x\ny", "", "\n"])), min_size=1, max_size=4),
)
def test_the_diff_is_one_that_patch_would_apply(lines, final, edits):
    """Issue 2, section 5: returns a unified diff; applied by hand here, by patch below."""
    numbered = [f"{index}:{line}" for index, line in enumerate(lines)]
    source = "\n".join(numbered) + ("\n" if final else "")
    wanted = {index: new for index, new in edits if index < len(lines)}
    view = View(source)
    splices = plan(view, [Replacement(numbered[i], new) for i, new in wanted.items() if len(lines) <= 10], "/f")
    after = apply_to_view(view, splices)
    assert patched(source, textdiff.unified(source, after, splices, "/f")) == after


def patched(source, diff):
    """Apply a unified diff strictly: every context line must be where the diff says."""
    old = source.splitlines(keepends=True)
    out, at = [], 0
    lines = diff.split("\n")[2:]
    for index, line in enumerate(lines):
        body = line[1:] + ("" if index + 1 < len(lines) and lines[index + 1].startswith("\\") else "\n")
        if line.startswith("@@"):
            first, count = re.match(r"@@ -(\d+)(?:,(\d+))?", line).groups()
            start = int(first) - (count != "0")
            out += old[at:start]
            at = start
        elif line.startswith("+"):
            out.append(body)
        elif line.startswith((" ", "-")):
            assert old[at] == body
            out += [body] if line[0] == " " else []
            at += 1
    return "".join(out + old[at:])


def test_patch_itself_applies_the_diff(tmp_path):
    """Issue 2, section 5: a unified diff as other programs read it."""
    source = "".join(f"line {n}\n" for n in range(60)) + "no end"
    view = View(source)
    splices = plan(
        view,
        [Replacement("line 3\n", ""), Replacement("line 7\n", "seven\nand\n"), Replacement("no end", "end\n")],
        "f",
    )
    after = apply_to_view(view, splices)
    (tmp_path / "f").write_text(source)
    diff = textdiff.unified(source, after, splices, "f") + "\n"
    try:
        subprocess.run(["patch", "-s", "f"], input=diff.encode(), cwd=tmp_path, check=True, timeout=20)
    except FileNotFoundError:
        pytest.skip("no patch here")
    assert (tmp_path / "f").read_text() == after


@pytest.mark.parametrize(
    ("text", "wanted", "said"),
    [
        ("def f():\n\treturn 1\n", "    return 1", [r'"\t" (U+0009)', "line 2"]),
        ("alpha = beta + gamma\nother\n", "alpha = beta + gama", ["line 1", "97 % alike"]),
        ("one\ntwo\nthree\nfour\n", "two\nthreee\nfour", ["lines 2-4", '"threee"', '"three"']),
        ("caf\u0065\u0301\n", "caf\u00e9", ["line 1"]),
        ("price 10\u00a0EUR\n", "price 10 EUR", [r"\u00a0", "U+00A0"]),
        ("abc\n", "zzzzqqqq", ["Nothing in it is like it"]),
        ("", "a", ["Nothing in it is like it"]),
        ("last line", "last line\n\n", ["the same"]),
    ],
)
def test_a_near_miss_is_shown_with_what_differs(text, wanted, said):
    """Issue 2, section 5: no match gives the nearest text with the differing part shown."""
    found = nearest(text, wanted)
    assert all(part in found for part in said), found


@pytest.mark.parametrize("line", ["x" * 200_000, "word " * 40_000, "a\n" * 200_000, "unique words here\n" * 30_000])
def test_looking_for_the_nearest_text_takes_bounded_work(line):
    """Issue 2, section 5 (ours): a miss in a large file does not hang the call."""
    nearest(line, ("wrod " * 500 + "\n") * 50)
