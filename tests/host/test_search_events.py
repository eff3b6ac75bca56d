"""The stream of messages of a searcher, cut at any place, with lines of any length."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from a2mcp.host.search_events import events
from a2mcp.host.search_text import WIDEST, clip, clip_in_file


def message(text, *, start=0, number=1, offset=0):
    data = {
        "path": {"text": "./a"},
        "lines": {"text": text},
        "line_number": number,
        "absolute_offset": offset,
        "submatches": [{"match": {"text": text[start : start + 5]}, "start": start, "end": start + 5}],
    }
    return msgspec.json.encode({"type": "match", "data": data}) + b"\n"


def cut(stream, size):
    return [stream[at : at + size] for at in range(0, len(stream), size)]


@given(st.lists(st.text(max_size=20), max_size=5), st.integers(1, 50))
def test_messages_survive_any_cut(texts, size):
    """Ours, a property: a message split over reads is put together again."""
    stream = b"".join(message(text) for text in texts)
    assert [event.data.lines.value().decode() for event in events(cut(stream, size))] == texts


def test_a_line_too_long_to_hold_keeps_its_place():
    """Ours (row F05): path, number, offset and column remain; the line does not."""
    tricky = 'x"},"line_number":99,"absolute_offset":98,"submatches":[{"start":97}]' * 40_000
    stream = message("before") + message(tricky, start=1_000_000, number=7, offset=123) + message("after")
    for size in (64 * 1024, 1_000_003):
        first, long, last = events(cut(stream, size))
        assert (first.data.lines.value(), last.data.lines.value()) == (b"before", b"after")
        assert long.data.lines is None
        assert (long.data.path.value(), long.data.line_number) == (b"./a", 7)
        assert (long.data.absolute_offset, long.data.start) == (123, 1_000_000)


def test_a_match_as_long_as_a_long_line_keeps_its_place():
    """Ours: the text of the match itself is repeated behind the line, and is as long."""
    body = "y" * 3_000_000
    data = {"path": {"text": "./a"}, "lines": {"text": body}, "line_number": 3, "absolute_offset": 9}
    data["submatches"] = [{"match": {"text": body}, "start": 0, "end": len(body)}]
    (event,) = events(cut(msgspec.json.encode({"type": "match", "data": data}) + b"\n", 100_000))
    assert (event.data.line_number, event.data.absolute_offset, event.data.start) == (3, 9, 0)


def test_a_last_message_that_was_cut_off_is_left_out():
    """Ours: the searcher was killed while it wrote."""
    assert len(list(events([message("a") + message("b")[:-5]]))) == 1


@given(
    st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=60),
    st.integers(0, 1000),
    st.integers(0, 1000),
)
def test_a_clipped_line_is_short_and_shows_the_hit(noise, before, after):
    """Ours, a property: the hit is in the text, and the column counts characters."""
    head, tail = noise * (before // 10), noise * (after // 10)
    line = f"{head}NEEDLE{tail}\r\n".encode()
    column, text = clip(line, len(head.encode()))
    assert column == len(head) + 1
    assert "NEEDLE" in text
    assert len(text) <= 6 * (WIDEST + 2)
    assert not any(ord(char) < 32 and char != "\t" for char in text)


def test_a_line_of_a_file_is_clipped_like_one_in_memory(tmp_path):
    """Try-out 20: the column of a hit in a long line counts characters, not bytes."""
    line = ("ü" * 5000 + "NEEDLE" + "é" * 5000 + "\n").encode()
    path = tmp_path / "long"
    path.write_bytes(b"first\n" + line + b"last\n")
    assert clip_in_file(path, 6, 10_000) == clip(line, 10_000)
