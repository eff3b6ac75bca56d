"""Drawings as SVG, by hand: the distribution of a run, and groups of bars that compare servers.

Colours follow the reader's light or dark preference where the viewer honours it. Text is escaped; nothing is fetched.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

import msgspec

from a2mcp.bench.terminal import micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2mcp.bench.result import Result

_PALETTE: Final = ("#3b6fb6", "#d98032", "#4f9d69", "#a95aa1", "#8a8a8a", "#c04a4a")
_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#222}.t{font-size:15px;font-weight:600}.s{fill:#666}.r{text-anchor:end}"
    ".m{text-anchor:middle}line{stroke:#ccc}rect.bg{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.s{fill:#999}line{stroke:#444}rect.bg{fill:#151515}}"
)
_WIDTH: Final = 760


class Series(msgspec.Struct, frozen=True):
    """One row of bars in a comparison: a name, and a value for each group (``None``: not measured)."""

    name: str
    values: tuple[float | None, ...]


def distribution(result: Result) -> str:
    """Draw the latencies of a run: one bar for each range, on a logarithmic scale."""
    left, top, height = 60, 70, 260
    latency = result.latency_us
    title = f"{result.calls_per_second:,.0f} calls/s, {result.clients} clients"
    note = f"p50 {micros(latency.p50)}, p90 {micros(latency.p90)}, p99 {micros(latency.p99)}, max {micros(latency.max)}"
    parts = [_text(left, 26, title, "t"), _text(left, 46, note, "s")]
    tallest = max((bar.count for bar in result.histogram), default=1)
    step = (_WIDTH - left - 20) / max(1, len(result.histogram))
    for index, bar in enumerate(result.histogram):
        tall = height * bar.count / tallest
        parts.append(_rect(left + index * step, top + height - tall, max(1.0, step - 1), tall, _PALETTE[0]))
    every = max(1, math.ceil(70 / step))
    marks = range(0, len(result.histogram), every)
    parts += [_text(left + at * step, top + height + 18, micros(result.histogram[at].low), "") for at in marks]
    parts.append(f'<line x1="{left}" y1="{top + height}" x2="{_WIDTH - 20}" y2="{top + height}"/>')
    return _document(top + height + 34, title, parts)


def comparison(title: str, note: str, groups: Sequence[str], series: Sequence[Series]) -> str:
    """Draw groups of horizontal bars, each group on a scale of its own, the value written at the end of its bar.

    Args:
        title: the heading.
        note: one line under it: machine, date, unit.
        groups: the names of the groups.
        series: for each server its values, one for each group.
    """
    left, thick, top = 190, 18, 66
    parts = [_text(20, 26, title, "t"), _text(20, 46, note, "s")]
    for place, group in enumerate(groups):
        longest = max((s.values[place] or 0 for s in series), default=0) or 1
        parts.append(_text(20, top + 14, group, "t"))
        top += 24
        for row, each in enumerate(series):
            value = each.values[place]
            width = (_WIDTH - left - 90) * (value or 0) / longest
            parts.append(_text(left - 8, top + 13, each.name, "r"))
            parts.append(_rect(left, top, max(1.0, width), thick - 3, _PALETTE[row % len(_PALETTE)]))
            parts.append(_text(left + width + 6, top + 13, "not measured" if value is None else f"{value:,.0f}", "s"))
            top += thick
        top += 12
    return _document(top + 8, title, parts)


def _document(height: float, title: str, parts: list[str]) -> str:
    size = f'width="{_WIDTH}" height="{height:.0f}" viewBox="0 0 {_WIDTH} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{escape(title)}</title>'
    return "\n".join(
        [head, f"<style>{_STYLE}</style>", '<rect class="bg" width="100%" height="100%"/>', *parts, "</svg>\n"]
    )


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}">{escape(text)}</text>'


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{colour}"/>'
