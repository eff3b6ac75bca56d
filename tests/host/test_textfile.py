"""Charsets and line ends: what is read can be written back byte for byte."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.host import textfile


@pytest.mark.parametrize(
    ("text", "charset", "found"),
    [
        ("rate = 7\n# coût: 3 ¤, café\n", "latin-1", "cp1252"),
        ("x = 1 # é\n", "latin-1", "cp1252"),
        ("naïve café — “quoted”\n", "cp1252", "cp1252"),
        ("Zażółć gęślą jaźń\n", "cp1250", "cp1250"),
        ("Привет мир, как дела сегодня\n", "cp1251", "cp1251"),
        ("Привет мир, как дела сегодня вечером\n", "koi8-r", "koi8_r"),
        ("これは日本語のテキストです。\n", "shift_jis", "cp932"),
        ("这是中文文本。用于测试。\n", "gb18030", "gb18030"),
    ],
)
def test_a_legacy_charset_is_found(text, charset, found):
    """Issue 2, section 5 and try-out 09: a detected legacy charset, readable text."""
    document = textfile.decode(text.encode(charset))
    assert document is not None
    assert (document.text, document.encoding.charset, document.encoding.guessed) == (text, found, True)


@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=200))
def test_unicode_with_a_mark_comes_back_byte_for_byte(charset, text):
    """Row F09: BOM and UTF-16."""
    data = ("\ufeff" + text).encode(charset)
    document = textfile.decode(data)
    assert document is not None
    assert document.text == text
    assert textfile.encode(document.text, document.encoding) == data


@given(st.binary(max_size=300))
def test_any_bytes_are_binary_or_come_back_when_said_to_be_exact(data):
    """Row F09: bytes survive; nothing is ever replaced."""
    document = textfile.decode(data)
    if document is not None and document.encoding.exact:
        assert textfile.encode(document.text, document.encoding) == data


@pytest.mark.parametrize(
    "data",
    [b"a\0b", b"\xff\xfea", b"\xff\xfe\x00\xd8", b"\xef\xbb\xbf\xff", bytes(range(1, 256)) * 4],
)
def test_what_is_not_text_is_not_guessed_at(data):
    """Issue 2, section 5 (ours): never mojibake."""
    assert textfile.decode(data) is None


def test_random_bytes_are_not_text():
    """Issue 2, section 5 (ours): other binary."""
    assert textfile.decode(os.urandom(20_000).replace(b"\0", b"")) is None


def test_a_part_may_end_inside_a_character():
    """Row F05 (ours): a window of a large file."""
    whole = "x" * 10 + "é😀"
    for cut in range(1, 4):
        document = textfile.decode_part(whole.encode()[:-cut])
        assert document is not None
        assert document.text == "x" * 10 + "é"


@pytest.mark.parametrize(
    ("text", "ending", "lines"),
    [
        ("", "none", []),
        ("a", "none", ["a"]),
        ("a\nb\n", "LF", ["a", "b"]),
        ("a\r\nb", "CRLF", ["a", "b"]),
        ("a\rb\r", "CR", ["a", "b"]),
        ("a\r\nb\nc\n", "mixed (1 CRLF, 2 LF)", ["a", "b", "c"]),
        ("10%\r20%\ndone\n", "LF", ["10%\r20%", "done"]),
        ("a\n\n", "LF", ["a", ""]),
        ("a\x0bb\u2028c\n", "LF", ["a\x0bb\u2028c"]),
    ],
)
def test_line_ends_are_named_and_split_at(text, ending, lines):
    """Issue 2, section 5: line ending in the header."""
    assert textfile.line_ending(text) == ending
    assert textfile.split_lines(text) == lines
