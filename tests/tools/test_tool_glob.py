"""The glob tool, as a caller sees it."""

import os
import time

import msgspec
import pytest
from crowded import crowded

from a2mcp.clock import SystemClock
from a2mcp.errors import BadArgument, ToolError
from a2mcp.tools.context import Context, Limits
from a2mcp.tools.glob import TOOL, GlobParams


@pytest.fixture
def context(tmp_path):
    cwd = tmp_path / "cwd"
    for age, name in enumerate(["new.py", "src/a.py", "src/deep/b.ts", "src/.dot.py"]):
        (cwd / name).parent.mkdir(parents=True, exist_ok=True)
        (cwd / name).touch()
        os.utime(cwd / name, (1_000_000 - age, 1_000_000 - age))
    return Context(ticket=None, cwd=cwd, home=tmp_path / "home", limits=Limits(), jobs=None, clock=SystemClock())


def glob(context, pattern, **arguments):
    return TOOL.run(GlobParams(pattern=pattern, **arguments), context)


def said(result):
    (block,) = result.content
    msgspec.json.encode(block)
    return block.text


def test_files_are_listed_newest_first_and_given_as_data(searcher, context):
    """Issue §5."""
    result = glob(context, "*.py")
    files = ["new.py", "src/a.py", "src/.dot.py"]
    assert said(result).startswith("new.py\nsrc/a.py\nsrc/.dot.py\n\n3 files, newest first.")
    assert {key: result.structured[key] for key in ("files", "total", "truncated")} == {
        "files": files,
        "total": 3,
        "truncated": False,
    }


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("src/*.py", ["src/a.py", "src/.dot.py"]),
        ("src/**/*.{py,ts}", ["src/a.py", "src/deep/b.ts", "src/.dot.py"]),
        ("src/deep/", ["src/deep/b.ts"]),
        ("./*.py", ["new.py"]),
        ("**/b.*", ["src/deep/b.ts"]),
        ("new.py", ["new.py"]),
        ("../cwd/*.py", ["new.py"]),
    ],
)
def test_a_pattern_is_about_names_or_about_paths(searcher, context, pattern, files):
    """Issue §5: braces and ``**``."""
    listed = glob(context, pattern).structured["files"]
    assert [
        os.path.normpath(file.removeprefix("../cwd/").replace(f"{context.cwd}/../cwd/", "")) for file in listed
    ] == files


def test_an_absolute_pattern_starts_where_it_says(searcher, context, tmp_path):
    """Ours: models write absolute patterns."""
    assert glob(context, f"{context.cwd}/src/*.py").structured["files"] == ["src/a.py", "src/.dot.py"]
    (tmp_path / "outside.txt").touch()
    assert glob(context, f"{tmp_path}/*.txt").structured["files"] == [f"{tmp_path}/outside.txt"]


def test_hidden_files_are_left_out_on_demand(searcher, context):
    """Issue §5: hidden."""
    assert glob(context, "*.py", hidden=False).structured["files"] == ["new.py", "src/a.py"]


def test_more_files_than_the_limit_say_how_to_see_them(searcher, context):
    """Issue §5: limit."""
    result = glob(context, "*", limit=1)
    assert "Newest 1 of 4 files shown. Raise limit" in said(result)
    assert result.structured["files"] == ["new.py"]
    assert (result.structured["total"], result.structured["truncated"]) == (4, True)


def test_where_the_room_is_used_up_a_higher_limit_is_no_advice(searcher, context):
    """Ours."""
    small = msgspec.structs.replace(context, limits=Limits(output_bytes=12))
    assert "Narrow path or pattern for the others." in said(glob(small, "*"))


def test_no_file_is_no_error(searcher, context):
    """Issue §5; a folder that is missing is said."""
    assert said(glob(context, "*.rs")).startswith("No files.")
    assert "There is no folder nowhere." in said(glob(context, "nowhere/*.rs"))


@pytest.mark.parametrize("pattern", ["", "/", "{a", "x" * 1001, "a\0b", "\ud800/x", "a\0/x"])
def test_a_bad_pattern_is_a_clear_error(context, pattern):
    """Issue §5."""
    with pytest.raises(BadArgument, match="'pattern'"):
        glob(context, pattern)


def test_a_place_that_cannot_be_listed_is_a_clear_error(context):
    """Ours."""
    with pytest.raises(ToolError, match="No such file"):
        glob(context, "*", path="missing")
    with pytest.raises(BadArgument, match="'path': expected a folder, received a file"):
        glob(context, "*", path="new.py")


def test_long_lists_stay_within_the_cap(context):
    """Issue §5: about 50 KiB of text."""
    for number in range(400):
        (context.cwd / f"{number:03}{'x' * 200}").touch()
    result = glob(context, "*xxx", limit=10_000)
    assert len(said(result)) < 51 * 1024
    assert result.structured["total"] == 400
    assert result.structured["truncated"] is True


def test_names_are_never_options_and_never_break_lines(searcher, context):
    """Rows F06 and F14."""
    for name in ("--help", "-e", "$(id);", "new\nline"):
        (context.cwd / name).touch()
    files = glob(context, "*").structured["files"]
    assert {"--help", "-e", "$(id);", f"file://{context.cwd}/new%0Aline"} <= set(files)
    assert glob(context, "--help").structured["files"] == ["--help"]


def test_links_in_a_circle_are_not_followed(searcher, context):
    """Row F12."""
    (context.cwd / "src" / "loop").symlink_to("..")
    (context.cwd / "self").symlink_to("self")
    assert glob(context, "**/*.py").structured["total"] == 3


@pytest.mark.slow
def test_very_many_files_are_listed_in_bounded_time(context):
    """Row F12; here a tenth of them, for the sake of the disk: time grows with their number alone."""
    for folder in range(20):
        crowded(context.cwd / f"d{folder}", (f"{number}.txt" for number in range(1000)))
    begun = time.monotonic()
    result = glob(context, "**/*.txt")
    assert time.monotonic() - begun < 5
    assert result.structured["total"] == 20_000
    assert len(result.structured["files"]) == 200
