"""Markdown as the reference uses it: tables whose cells cannot break them, and the notice on top of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def head(title: str, source: str) -> str:
    """Begin a page: its title, and where its words come from."""
    return (
        f"# {title}\n\n"
        f"<!-- Written by `make docs` from {source}. Edit that, not this page: a test compares the two. -->\n"
    )


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table."""
    lines = [_row(headers), _row(["---"] * len(headers)), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """Set a word as code; nothing stays nothing."""
    return f"`{text}`" if text else ""


def one_line(text: str) -> str:
    """Join the lines of a paragraph, and make what docstrings mark as code Markdown's own."""
    return " ".join(text.split()).replace("``", "`")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in cells) + " |"
