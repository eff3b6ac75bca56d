"""A result as text for a terminal: the figures, the errors, and the distribution as bars of characters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from a2mcp.bench.histogram import Bar
    from a2mcp.bench.result import Latency, Result

_WIDTH: Final = 48
_MAX_ROWS: Final = 24
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def show(result: Result, console: Console) -> None:
    """Print a result."""
    console.print(_headline(result), soft_wrap=True)
    console.print(_percentiles(result))
    for row in bars(result.histogram):
        console.print(Text(row), soft_wrap=True)
    for kind, count in result.errors.items():
        console.print(Text(f"error: {kind}  {count:,}", style="red"))
    for warning in warnings(result):
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def warnings(result: Result) -> list[str]:
    """What a reader must know before believing the figures."""
    found = []
    if result.client_is_limit:
        share = f"{result.client_cpu_share:.0%}"
        found.append(f"the client used {share} of its core: it may be the limit, not the server; run several at once")
    if result.gave_up:
        found.append("stopped early: no connection held any more")
    if result.unfinished:
        found.append(f"{result.unfinished:,} calls were not answered when the run ended; they are in no figure")
    return found


def micros(value: float) -> str:
    """A duration in the unit that reads best: ``850 µs``, ``12.3 ms``, ``4.20 s``."""
    if value < 1000:
        return f"{value:.0f} µs"
    return f"{value / 1000:.1f} ms" if value < 1_000_000 else f"{value / 1_000_000:.2f} s"


def bars(histogram: tuple[Bar, ...]) -> list[str]:
    """One row of text for each bar; the long tail is cut to a bounded number of rows, the last row saying so."""
    if not histogram:
        return []
    tallest = max(bar.count for bar in histogram)
    shown, rest = histogram[:_MAX_ROWS], sum(bar.count for bar in histogram[_MAX_ROWS:])
    rows = [f"{micros(bar.low):>9} {_bar(bar.count / tallest)} {bar.count:,}" for bar in shown]
    return [*rows, f"{'longer':>9} {_bar(rest / tallest)} {rest:,}"] if rest else rows


def _bar(share: float) -> str:
    eighths = round(min(share, 1.0) * _WIDTH * 8)
    drawn = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    return f"{drawn or ('▏' if share else ''):<{_WIDTH}}"


def _headline(result: Result) -> Text:
    rate = f"{result.calls_per_second:,.0f} calls/s"
    rest = f"{result.calls:,} calls in {result.seconds:.1f} s, {result.clients} clients, {result.failed:,} failed"
    return Text.assemble((rate, "bold"), f"  ({rest}; client CPU {result.client_cpu_share:.0%})")


def _percentiles(result: Result) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("", "calls", "min", "p50", "p90", "p99", "max"):
        table.add_column(column, justify="right" if column else "left")
    if len(result.steps) > 1:
        for step in result.steps:
            table.add_row(Text(step.label), f"{step.calls:,}", *_cells(step.latency_us))
    table.add_row("all", f"{result.calls:,}", *_cells(result.latency_us))
    return table


def _cells(latency: Latency) -> list[str]:
    return [micros(value) for value in (latency.min, latency.p50, latency.p90, latency.p99, latency.max)]
