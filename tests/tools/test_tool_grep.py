"""The grep tool, as a caller sees it."""

import subprocess
import threading
import time

import msgspec
import pytest

from a2mcp.clock import SystemClock
from a2mcp.errors import BadArgument, ToolError
from a2mcp.host import ripgrep
from a2mcp.tools.context import Context, Limits
from a2mcp.tools.grep import TOOL, GrepParams


@pytest.fixture
def context(tmp_path):
    return Context(ticket=None, cwd=tmp_path, home=tmp_path / ".home", limits=Limits(), jobs=None, clock=SystemClock())


def grep(context, pattern, /, **arguments):
    return TOOL.run(GrepParams(pattern=pattern, **arguments), context)


def said(result):
    (block,) = result.content
    msgspec.json.encode(block)
    return block.text


def test_hits_are_grouped_by_file_and_given_as_data(searcher, context, tmp_path):
    """Issue §5: path, then line:col: text, with context; the same as data."""
    (tmp_path / "b.txt").write_text("one\ntwo needle\nthree\n")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "c.txt").write_text("needle\n")
    result = grep(context, "needle", context=1)
    body = "a/c.txt\n1:1: needle\n\nb.txt\n1-  one\n2:5: two needle\n3-  three\n\n2 matches in 2 files."
    assert said(result).startswith(body)
    assert result.structured["matches"] == [
        {"path": "a/c.txt", "line": 1, "column": 1, "text": "needle"},
        {"path": "b.txt", "line": 2, "column": 5, "text": "two needle"},
    ]
    assert result.structured["truncated"] is False
    assert result.structured["filesSearched"] == 2
    assert not result.is_error


def test_where_the_room_is_used_up_a_higher_limit_is_no_advice(searcher, context, tmp_path):
    """Ours."""
    (tmp_path / "f").write_text("needle\n" * 9)
    small = msgspec.structs.replace(context, limits=Limits(output_bytes=60))
    assert "there are more. Narrow path, glob or pattern." in said(grep(small, "needle"))


def counts_files(searcher):
    """Whether files without a match are counted: ripgrep 13 does not."""
    if searcher == "built-in":
        return True
    said = subprocess.run([ripgrep.find(), "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.split()[1].split(".")[0]) >= 14


def test_no_match_is_no_error(searcher, context, tmp_path):
    """Issue §5."""
    (tmp_path / "f").write_text("x\n")
    result = grep(context, "needle")
    assert said(result).startswith("No matches in 1 file." if counts_files(searcher) else "No matches.")
    assert not result.is_error


def test_where_there_is_no_file_there_is_no_match(searcher, context):
    """Ours: not a word about files that nobody may have counted."""
    assert said(grep(context, "needle")).startswith("No matches.")


def test_more_hits_than_the_limit_say_how_to_see_them(searcher, context, tmp_path):
    """Issue §5: sizes are capped, and what is missing is said."""
    (tmp_path / "f").write_text("x\n" * 9)
    result = grep(context, "x", limit=4)
    assert "First 4 matches shown; there are more. Raise limit" in said(result)
    assert result.structured["truncated"] is True
    assert len(result.structured["matches"]) == 4


def test_text_stays_within_the_cap(searcher, context, tmp_path):
    """Issue §5: about 50 KiB of text."""
    (tmp_path / "f").write_text(("needle" + "y" * 390 + "\n") * 5000)
    result = grep(context, "needle", limit=5000)
    assert 40 * 1024 < len(said(result)) < 52 * 1024
    assert result.structured["truncated"] is True


def test_gaps_between_lines_of_context_are_marked(searcher, context, tmp_path):
    """Ours."""
    (tmp_path / "f").write_text("".join(f"{n}\n" for n in range(1, 21)))
    assert said(grep(context, "^(5|15)$", context=1)).startswith(
        "f\n4-  4\n5:1: 5\n6-  6\n--\n14-  14\n15:1: 15\n16-  16\n\n2 matches"
    )


def test_one_file_can_be_searched_by_any_spelling_of_its_path(searcher, context, tmp_path):
    """Issue §5 and row F14: a file, a dash in front, an address; a glob does not sort out the file that was named."""
    (tmp_path / "-dash.txt").write_text("needle\n")
    for path in ("-dash.txt", str(tmp_path / "-dash.txt"), f"file://{tmp_path}/-dash.txt"):
        assert said(grep(context, "needle", path=path, glob="src/*.c")).startswith("-dash.txt\n1:1: needle")


def test_a_path_outside_of_the_working_directory_is_absolute(context, tmp_path):
    """Ours: every path that is shown can be passed back."""
    (tmp_path / "f").write_text("needle\n")
    inside = msgspec.structs.replace(context, cwd=tmp_path / "elsewhere")
    assert said(grep(inside, "needle", path=str(tmp_path))).startswith(f"{tmp_path}/f\n")


def test_a_name_that_does_not_print_becomes_an_address(searcher, context, tmp_path):
    """Row F06: round trip."""
    (tmp_path / "new\nline").write_text("needle\n")
    (match,) = grep(context, "needle").structured["matches"]
    assert match["path"] == f"file://{tmp_path}/new%0Aline"
    assert grep(context, "needle", path=match["path"]).structured["matches"] == [match]


@pytest.mark.parametrize("pattern", ["", "a\nb", "a\0", "\ud800", "x" * 10_001])
def test_a_pattern_that_no_searcher_can_take_is_refused(context, pattern):
    """Issue §5: a clear error."""
    with pytest.raises(BadArgument, match="'pattern'"):
        grep(context, pattern)


def test_a_bad_pattern_is_a_clear_error(searcher, context, tmp_path):
    """Try-out 20: ``(``."""
    with pytest.raises(BadArgument, match=r"received '\(': (unclosed group|missing \))"):
        grep(context, "(")


def test_a_bad_glob_is_a_clear_error(context):
    """Issue §5."""
    with pytest.raises(BadArgument, match=r"'glob': expected a glob, received '\{a'"):
        grep(context, "x", glob="{a")


def test_a_place_that_cannot_be_searched_is_a_clear_error(context, tmp_path):
    """Ours."""
    with pytest.raises(ToolError, match="No such file"):
        grep(context, "x", path="missing")
    with pytest.raises(ToolError, match="neither a folder"):
        grep(context, "x", path="/dev/null")


def test_a_hit_in_a_very_long_line_is_clipped_with_its_column(searcher, context, tmp_path):
    """Try-out 20: one line of 30 MB with a hit in the middle."""
    (tmp_path / "min.js").write_text("a;" * 7_500_000 + "needle" + "b;" * 7_500_000)
    begun = time.monotonic()
    (match,) = grep(context, "needle").structured["matches"]
    assert time.monotonic() - begun < 5
    assert (match["line"], match["column"]) == (1, 15_000_001)
    assert "a;needleb;" in match["text"]
    assert len(match["text"]) < 500


def test_other_work_goes_on_while_a_pattern_takes_for_ever(searcher, context, tmp_path):
    """Try-out 20: an unrelated read is answered in under a second meanwhile."""
    (tmp_path / "x.txt").write_text("x" * 40)
    running = threading.Thread(target=grep, args=(context, "(x+x+)+y"))
    running.start()
    begun = time.monotonic()
    for _ in range(200):
        (tmp_path / "x.txt").read_text()
    assert time.monotonic() - begun < 1
    running.join(timeout=5)
    assert not running.is_alive()


def test_the_schema_says_what_there_is():
    """Issue §5: the arguments of grep."""
    schema = TOOL.spec.input_schema
    assert list(schema["properties"]) == ["pattern", "path", "glob", "literal", "case", "context", "limit", "gitignore"]
    assert schema["required"] == ["pattern"]
    assert all(part["description"] for part in schema["properties"].values())
