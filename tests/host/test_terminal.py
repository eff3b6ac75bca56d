"""Output bytes into text: nothing split, bad bytes shown, control sequences gone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.host import terminal

MIXED = st.lists(
    st.sampled_from(
        [b"a", b"\n", "é".encode(), "€".encode(), "😀".encode(), b"\xff", b"\xe2\x82", b"\xf0\x9f", b"\x80"]
    )
    | st.binary(max_size=3),
    max_size=12,
).map(b"".join)


@given(data=MIXED)
def test_a_split_at_any_offset_changes_nothing(data):
    """Row B06: invalid UTF-8 split across reads at every offset."""
    whole = data.decode("utf-8", "replace")
    for at in range(len(data) + 1):
        steps = terminal.decoder()
        assert steps.decode(data[:at]) + steps.decode(data[at:], final=True) == whole


@given(data=MIXED, size=st.integers(16, 20))
def test_pages_of_any_size_make_up_the_whole(data, size):
    """Row B06: paging, too, neither splits a character nor loses a byte."""
    # Paging a line that returns to its beginning shows each page's own part of it: that is another test.
    data = (data * 8)[:200].translate(None, b"\x1b\r\b")
    shown, offset = "", 0
    while offset < len(data):
        page = data[offset : offset + size]
        part, used = terminal.page(page, last=offset + len(page) == len(data))
        assert used > 0
        shown, offset = shown + part, offset + used
    assert shown == terminal.clean(data.decode("utf-8", "replace"))


@given(data=st.binary(max_size=200))
def test_no_control_character_is_left_but_tab_and_newline(data):
    """Issue §5: control sequences stripped."""
    shown = terminal.clean(terminal.decode(data))
    assert not [char for char in shown if (ord(char) < 32 and char not in "\t\n") or 0x7F <= ord(char) < 0xA0]


@given(text=st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("\n\t")))
def test_plain_text_stays_as_it_is(text):
    """Ours: cleaning is for control characters only."""
    assert terminal.clean(text) == text
    assert terminal.decode(text.encode()) == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38:2::1:2:3mx\x1b[?25l\x1b[2Jy", "xy"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        ("\x1bP1$r0m\x1b\\a\x1b(Bb\x1b=c\x1b7", "abc"),
        ("\x9b31mx", "x"),
        ("\x1b]0;never ended\nnext", "0;never ended\nnext"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("a long line\rshort\n", "shortg line\n"),
        ("a long line\r\x1b[Kshort\n", "short\n"),
        ("a long line\x1b[2K\rshort\n", "short\n"),
        ("progress\r", "progress"),
        ("a\x08ab_\x08c", "abc"),
        ("|\x08/\x08-\x08done", "done"),
        ("x\x00\x07\x0b\x0cy\x7f", "xy"),
        ("\x01\x02a", "a"),
    ],
)
def test_a_reader_sees_what_a_terminal_shows(raw, shown):
    """Ours: sequences of the kinds that programs write."""
    assert terminal.clean(raw) == shown


def test_an_ending_cut_inside_a_character_leaves_it_out():
    """Ours: both ends of an excerpt."""
    data = "€uro€".encode()
    assert terminal.decode(data[:-1], cut_after=True) == "€uro"
    assert terminal.decode(data[1:], cut_before=True) == "uro€"
    assert terminal.decode(b"\x80\x80", cut_before=True) == ""


@pytest.mark.parametrize("sequence", ["\x1b[31m", "\x1b]0;t\x07", "\x1b(B", "\r\n"])
def test_a_sequence_is_not_split_between_pages(sequence):
    """Ours: the page ends before it."""
    for at in range(1, len(sequence)):
        shown, used = terminal.page(b"ab" + sequence[:at].encode(), last=False)
        assert (shown, used) == ("ab", 2)
    assert terminal.page(b"ab" + sequence.encode() + b"c", last=False)[0].replace("\n", "") == "abc"


@pytest.mark.parametrize(
    ("data", "text", "used"),
    [
        (b"abc\x1b]" + b"\xff" * 10, "abc", 3),
        (b"abcdef\x1b]0;" + b"\xff" * 6, "abcdef", 6),
        (b"ab\x1b]\xff\x1b", "ab", 2),
        (b"\xffab\r", "\ufffdab", 3),
    ],
)
def test_bytes_that_are_no_text_do_not_move_the_end_of_a_page(data, text, used):
    """Ours: the next offset was before the page, or negative, which means from the end."""
    assert terminal.page(data, last=False) == (text, used)


@given(
    data=st.lists(
        st.sampled_from([b"a", b"\x1b", b"]", b"[", b"0", b"\xff", b"\xe2", b"\r", b"\n", b"\x07"]), min_size=1
    )
)
def test_a_page_always_moves_on_and_never_beyond_its_end(data):
    """Ours."""
    whole = b"".join(data)
    assert 0 < terminal.page(whole, last=False)[1] <= len(whole)


def test_a_page_that_is_all_one_unfinished_thing_still_moves_on():
    """Ours: paging always ends."""
    for data in (b"\x1b[" + b"0" * 100, b"\xe2\x82", b"\r"):
        assert terminal.page(data, last=False)[1] == len(data)
