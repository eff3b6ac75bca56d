"""A caller's path: what it means, how it is shown, what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.errors import BadArgument
from a2mcp.host import paths


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("/a/b", "/a/b"),
        ("b", "/w/b"),
        ("./b", "/w/b"),
        ("../b", "/w/../b"),
        ("a//b/", "/w/a/b"),
        ("~", "/home/me"),
        ("~/x", "/home/me/x"),
        ("~user", "/w/~user"),
        ("-rf", "/w/-rf"),
        ("a;$(b)", "/w/a;$(b)"),
        ("file:///a/b%20c", "/a/b c"),
        ("file://localhost/a", "/a"),
        ("FILE:///a", "/a"),
        ("file:/a", "/a"),
        ("file:///a/%ff", "/a/\udcff"),
        ("file.txt", "/w/file.txt"),
        ("file:x", "/w/file:x"),
    ],
)
def test_a_path_means_what_its_form_says(raw, expected, monkeypatch):
    """Issue 2, section 5, rows F01 and F14: ~, file:// and relative paths; nothing has option or shell meaning."""
    monkeypatch.setenv("HOME", "/home/me")
    assert paths.resolve(raw, Path("/w")) == Path(expected)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("", "an empty string"),
        ("a\0b", "without NUL"),
        ("file:///a%00b", "without NUL"),
        ("a\ud800b", r"lone surrogate \ud800 at character 1"),
        ("file://elsewhere/a", "of this machine"),
        ("file://", "of this machine"),
    ],
)
def test_a_path_no_file_can_have_is_refused_by_name(raw, said):
    """Rows F01 and F06: NUL, surrogates, foreign addresses."""
    with pytest.raises(BadArgument) as caught:
        paths.resolve(raw, Path("/w"))
    assert caught.value.field == "path"
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain é 日本 😀", "plain é 日本 😀"),
        ("caf\udce9", r"caf\xe9"),
        ("a\nb\x1b[31m", r"a\nb\x1b[31m"),
        ("a\u202eb", r"a\u202eb"),
        ("\ud800", r"\ud800"),
    ],
)
def test_a_path_is_shown_as_one_line_of_valid_unicode(raw, shown):
    """Row F06: names that are not UTF-8, hold a newline or emoji."""
    assert paths.show(raw) == shown


def test_a_long_path_is_shown_shortened():
    """Row F01: a component of 5,000 characters."""
    assert len(paths.show("x" * 5000)) < 500


@given(st.binary(min_size=1, max_size=60).filter(lambda name: b"\0" not in name))
def test_any_name_can_be_passed_back_as_an_address(name):
    """Row F06: round trip of any bytes."""
    path = Path("/w", os.fsdecode(name))
    assert paths.resolve(paths.as_url(path), Path("/elsewhere")) == path


@given(st.text(max_size=80))
def test_whatever_is_shown_is_encodable(text):
    """Row F06 (ours): text of a result must be UTF-8."""
    paths.show(text).encode()


def test_a_refusal_says_what_why_and_what_to_do():
    """Row F11: isError with errno text."""
    said = str(paths.refusal("write", Path("/x"), PermissionError(13, "Permission denied")))
    assert said.startswith("Cannot write /x: Permission denied (EACCES).")
    assert "permissions" in said
