"""Events for people: one line each, and the diff of an edit below its own.

Owns the words and the colours of a line. SECURITY: what comes from a caller is made visible first, so that no tool's
name, argument or diff can move the cursor, hide itself or run from right to left. Needs ``rich`` for widths and
colours, and is imported by who prints.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

import msgspec
from rich.cells import cell_len
from rich.text import Text

from a2mcp.observe.event import ANSWERED, CALL_DONE, GAP, LOST, SESSION, WAITING, WARNING, Event

if TYPE_CHECKING:
    from collections.abc import Iterator

STYLES: Final = {
    "ok": "green",
    "error": "red",
    "cancelled": "yellow",
    "aborted": "yellow",
    "waiting": "bold yellow",
    "approved": "green",
    "denied": "red",
    "expired": "red",
    "lost": "red",
    "running": "cyan",
}
"""By status."""
MOST_DIFF_LINES: Final = 40
_SHORT: Final = 8
_DIFF_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}


def lines(event: Event, width: int) -> Iterator[Text]:
    """Write an event as lines of at most ``width`` cells.

    Args:
        event: what happened.
        width: of the terminal, in cells: a CJK character takes two.
    """
    yield cut(line(event), width)
    if event.diff:
        yield from _diff(event.diff, width)


def line(event: Event) -> Text:
    """Write an event as one line, however long."""
    written = Text(event.ts[11:23] or "-", style="dim")
    written.append(f"  {visible(event.status or event.kind):<9}", style=STYLES.get(event.status or "", "magenta"))
    written.append(f"  {visible(_what(event))}", style="bold")
    if event.seconds is not None:
        written.append(f"  {_took(event.seconds)}", style="dim")
    if said := _said(event):
        written.append(f"  {visible(said)}")
    if event.client:
        written.append(f"  {visible(event.client)}", style="blue")
    if event.session:
        written.append(f"  {visible(event.session[:_SHORT])}", style="dim")
    return written


def visible(text: str) -> str:
    """Write what a terminal would obey, reorder or hide, as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(c) for c in unicodedata.normalize("NFC", text))


def cut(text: Text, width: int) -> Text:
    """Shorten a line to its width in cells, with a mark where something is missing."""
    if width <= 0 or cell_len(text.plain) <= width:
        return text
    shortened = text.copy()
    shortened.truncate(width, overflow="ellipsis")
    return shortened


def _escaped(c: str) -> str:
    # A combining mark that is left after composing may be one of a thousand, stacked over the lines above.
    if c.isprintable() and unicodedata.category(c) != "Mn":
        return c
    return c.encode("unicode_escape").decode()


def _what(event: Event) -> str:
    if event.kind in (GAP, WARNING, SESSION):
        return event.kind
    if event.kind in (WAITING, ANSWERED):
        return f"{event.tool} (approval)"
    if event.kind.startswith("job"):
        return event.kind
    return event.tool or event.kind


def _said(event: Event) -> str:
    if event.kind == CALL_DONE and event.status == LOST:
        return "the daemon ended before this call had"
    if not event.args:
        return ""
    if event.kind == GAP:
        missed = msgspec.json.decode(event.args)
        return f"{missed['last'] - missed['first'] + 1} events were not seen ({missed['first']} to {missed['last']})"
    if event.kind == WARNING:
        return str(msgspec.json.decode(event.args).get("text", ""))
    return "" if event.kind == CALL_DONE and event.status == "ok" else bytes(event.args).decode("utf-8", "replace")


def _took(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _diff(diff: str, width: int) -> Iterator[Text]:
    found = diff.splitlines()
    for one in found[:MOST_DIFF_LINES]:
        yield cut(Text("    " + visible(one), style=_DIFF_STYLES.get(one[:1], "dim")), width)
    if len(found) > MOST_DIFF_LINES:
        yield Text(f"    … {len(found) - MOST_DIFF_LINES} more lines", style="dim")
