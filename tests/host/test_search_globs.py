"""What a glob pattern means, whichever program lists the files."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.host.globs import MOST_ALTERNATIVES, Globs, split_base


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "a.py"),
        ("*.py", "deep/er/a.py"),
        ("src/*.py", "src/a.py"),
        ("src/**/*.py", "src/a.py"),
        ("src/**/*.py", "src/b/c/a.py"),
        ("**/tests/**", "x/tests/y/z"),
        ("src/", "src/x/y"),
        ("*.{js,ts}", "x/a.ts"),
        ("{src,lib/{a,b}}/*.c", "lib/b/x.c"),
        ("a?c.[ch]", "abc.h"),
        ("[!a]*", "b"),
        ("[^a]*", "b"),
        (r"\[x\]", "[x]"),
        (r"\*", "*"),
        (r"\{a,b\}", "{a,b}"),
        ("!*.min.js", "a.js"),
        ("./a/b", "a/b"),
        ("-rf", "-rf"),
        ("$(id);*", "$(id);x"),
    ],
)
def test_a_pattern_matches_what_it_means(pattern, path):
    """Ours; row F14 for the last two."""
    assert Globs(pattern).matches(path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "a.pyc"),
        ("src/*.py", "src/b/a.py"),
        ("src/*.py", "x/src/a.py"),
        ("a*c", "a/c"),
        ("[!a]*", "ab"),
        (r"\*", "x"),
        ("!*.min.js", "x/a.min.js"),
        ("*.{js,ts}", "a.tsx"),
        ("**/a", "b"),
    ],
)
def test_a_pattern_matches_nothing_else(pattern, path):
    """Ours."""
    assert not Globs(pattern).matches(path)


@pytest.mark.parametrize("pattern", ["", "!", "/", "{a", "{a,{b}", "{,a}", "x" * 1001, "{a,b}" * 9, "a\0", "\ud800"])
def test_a_bad_pattern_is_refused_with_a_reason(pattern):
    """Ours: every bad input gets a clear error."""
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        Globs(pattern)


def test_braces_stand_for_a_bounded_number_of_patterns():
    """Ours: the eighth doubling is the last."""
    assert MOST_ALTERNATIVES == 2**8
    assert Globs("{a,b}" * 8).matches("abababab")


@pytest.mark.parametrize("pattern", ["*a" * 400 + "b", "**/" * 300 + "b", "{" * 400 + "a" + "}" * 400])
def test_no_pattern_takes_long(pattern):
    """Try-out 20, for globs: what is slow elsewhere is not slow here."""
    begun = time.monotonic()
    assert not Globs(pattern).matches("/".join(["a" * 200] * 20))
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize("pattern", [".", "./", "./.", "/.", "{./.,*.py}"])
def test_the_folder_itself_means_all_that_is_in_it(pattern):
    """Ours: some of these ended in an IndexError."""
    found = Globs(pattern)
    assert found.matches("a/b.txt")
    assert found.names() == []


def test_the_coarse_sieve_never_loses_a_match():
    """Ours: names() only goes to ripgrep if it says no less than the pattern."""
    assert Globs("src/**/*.{js,ts}").names() == ["*.js", "*.ts"]
    for pattern in ("src/**", "*", "!*.py", "[ab].py", r"\*.py", "a:b"):
        assert Globs(pattern).names() == []


@pytest.mark.parametrize(
    ("pattern", "base", "rest"),
    [
        ("*.py", "", "*.py"),
        ("src/a/*.py", "src/a", "*.py"),
        ("/etc/*.conf", "/etc", "*.conf"),
        ("/*.conf", "/", "*.conf"),
        ("~/x/**", "~/x", "**"),
        ("src/", "src", "**"),
        ("{a,b}/x/*.c", "", "{a,b}/x/*.c"),
        ("../x", "..", "x"),
    ],
)
def test_leading_folders_are_cut_off_a_pattern(pattern, base, rest):
    """Ours: absolute patterns and named folders start the walk where they lead."""
    assert split_base(pattern) == (base, rest)


@given(st.text(min_size=1, max_size=30), st.text(max_size=30))
def test_any_text_is_a_pattern_or_a_value_error(pattern, path):
    """Ours, a property."""
    try:
        globs = Globs(pattern)
    except ValueError:
        return
    assert globs.matches(path) in {True, False}


@given(st.lists(st.text("abc.", min_size=1, max_size=4), min_size=1, max_size=5))
def test_a_path_without_wildcards_matches_itself(parts):
    """Ours, a property."""
    path = "/".join(part.replace(".", "_") for part in parts)
    assert Globs(path, anchored=True).matches(path)
    assert Globs("**").matches(path)
