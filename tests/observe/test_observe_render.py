"""Events for people: widths, colours, and what a caller may not do to a terminal."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from a2mcp.observe import render
from a2mcp.observe.event import Event, as_args, gap


def event(**more) -> Event:
    return Event(**{"sequence": 1, "ts": "2026-10-16T04:35:23.123Z", "kind": "call.done", "tool": "bash",
                    "status": "error", "seconds": 0.0123, "args": msgspec.Raw(b'{"command":"ls"}'), **more})  # fmt: skip


def test_a_call_is_one_line():
    """Issue 6, item 3."""
    assert render.line(event(client="omp", session="1b3f00c3-6d04")).plain == (
        '04:35:23.123  error      bash  12.3 ms  {"command":"ls"}  omp  1b3f00c3'
    )


def test_a_gap_says_how_much_was_not_seen():
    """Issue 6, item 3: gap notices."""
    assert "5 events were not seen (3 to 7)" in render.line(gap(3, 7)).plain


@pytest.mark.parametrize(
    "evil", ["\x1b[2J", "\r", "\x9b31m", "\u202e", "\u2066", "\u200b", "\x07", "a" + "\u0300" * 50]
)
def test_nothing_of_a_caller_moves_the_cursor_or_hides(evil):
    """Issue 6, bad input: control characters, right-to-left marks."""
    text = "".join(one.plain for one in render.lines(event(tool=evil, client=evil, diff=f"+{evil}"), 0))

    assert text.isprintable()
    assert "\u0300" not in text


@given(st.text(max_size=200), st.integers(8, 120))
def test_no_line_is_wider_than_the_terminal(text, width):
    """Issue 6, item 3: width and CJK right."""
    shown = event(args=as_args(command=text + "中文字符" * 40), diff="+" + text.replace("\n", " ") + "全角" * 60)

    assert all(cell_len(line.plain) <= width for line in render.lines(shown, width))


def test_a_diff_has_its_colours_and_an_end():
    """Issue 6, item 3: diffs of edits."""
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n" + "\n".join(f"+{n}" for n in range(100))
    lines = list(render.lines(event(diff=diff), 80))

    assert len(lines) == 1 + render.MOST_DIFF_LINES + 1
    assert lines[3].style == "cyan"
    assert "63 more lines" in lines[-1].plain
