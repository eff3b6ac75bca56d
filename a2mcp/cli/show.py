"""How facts are printed: JSON for programs, a table for a terminal, tab-separated lines for a pipe.

SECURITY: much of what is shown here came from a remote caller. Nothing is printed before ``visible`` has made every
control, format and direction character readable, so that a call that waits for approval cannot dress up as another.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from a2mcp.config.paths import Home, home_from_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_SHORT = 8
"""Characters of a random id that tell it from the others, and of an hour without its fraction."""
_NARROWEST = 12
"""Cells that a column between the first and the last may have on any terminal; on a wide one it has an eighth."""
_ONE_MINUTE = 60
_ONE_HOUR = 3600


def current_home() -> Home:
    """Return the home that the environment names."""
    return home_from_environment(os.environ)


def json_option(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb that prints facts its ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(verb)


def as_document(value: Any) -> None:
    """Print any value as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def compact(value: Any) -> str:
    """Write any value as JSON on one line."""
    return msgspec.json.encode(value).decode()


def visible(text: str) -> str:
    """Write what a terminal would obey, or hide, as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def short(identifier: str | None) -> str:
    """Write the id of a call or a session: its beginning on a terminal, where that will do, and all of it elsewhere."""
    if identifier is None:
        return "-"
    return identifier[:_SHORT] if sys.stdout.isatty() else identifier


def moment(stamp: str) -> str:
    """Write a time (UTC): on a terminal the hour of one of today, else the day; all of it elsewhere."""
    if not sys.stdout.isatty():
        return stamp
    day, _, hour = stamp.partition("T")
    return hour[:_SHORT] if day == datetime.now(UTC).date().isoformat() else day


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], whole: Sequence[str] = ()) -> None:
    """Print rows: a table on a terminal, one tab-separated line each elsewhere.

    Args:
        headers: of the columns. On a terminal the last is told in full, and the others are cut to one line.
        rows: their cells.
        whole: the headers of further columns that are told in full.
    """
    if sys.stdout.isatty():
        _rich_table(headers, rows, (*whole, headers[-1]))
        return
    click.echo("\t".join(headers))
    for row in rows:
        click.echo("\t".join(visible(cell) for cell in row))


def duration(seconds: float) -> str:
    """Write a length of time in the two units that matter."""
    whole = int(seconds)
    if whole < _ONE_MINUTE:
        return f"{whole} s"
    if whole < _ONE_HOUR:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 24 * _ONE_HOUR:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def _rich_table(headers: Sequence[str], rows: Iterable[Sequence[str]], whole: Sequence[str]) -> None:
    from rich.console import Console  # noqa: PLC0415 - 60 ms that only a table is worth
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console()
    drawn = Table(box=None, header_style="bold", pad_edge=False)
    widest = max(_NARROWEST, console.width // 8)
    for header in headers:
        if header in whole:
            # All of it: what a call does may be what is decided by.
            drawn.add_column(header, overflow="fold")
        else:
            cells = None if header == headers[0] else widest
            drawn.add_column(header, no_wrap=True, overflow="ellipsis", max_width=cells)
    for row in rows:
        # Text, not str: square brackets in a command are no markup.
        drawn.add_row(*(Text(visible(cell)) for cell in row))
    console.print(drawn)
