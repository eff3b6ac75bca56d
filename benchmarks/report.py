"""Writes a run down: a page with tables, the same as JSON, and a chart. Says what machine it was, not whose."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING, Any, Final

import msgspec
import psutil

from a2mcp.bench.chart import Series, comparison
from benchmarks.bars import Bar, Medians, judge
from benchmarks.rounds import CLIENTS, Findings

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.catalog import Server

_NONE: Final = "\N{EN DASH}"
_NOTE: Final = (
    "Every round starts every server anew. The peers check no token and keep no log, except the Bun estimate; a2mcp "
    "does both. Latencies are in µs."
)
_OPERATIONS: Final = ("initialize", "ping", "tools/list", "echo", "read", "bash true")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A run with everything that is needed to read it later."""

    date: str
    quick: bool
    machine: str
    client: str
    servers: dict[str, str]
    skipped: dict[str, str]
    findings: Findings


def machine() -> str:
    """The machine in one line, without its name."""
    memory = psutil.virtual_memory().total / 2**30
    system = f"{platform.system()} {platform.machine()}"
    return f"{os.cpu_count()} cores, {memory:.0f} GiB memory, {system}, Python {platform.python_version()}"


def write(report: Report, servers: list[Server], folder: Path) -> Path:
    """Write all three files. Returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"results-{report.date}" + ("-quick" if report.quick else "")
    medians = Medians(report.findings)
    names = [server.name for server in servers]
    page = folder / f"{stem}.md"
    page.write_text(_page(report, medians, names, stem), encoding="utf-8")
    (folder / f"{stem}.json").write_bytes(msgspec.json.format(msgspec.json.encode(_facts(report, medians))) + b"\n")
    (folder / f"{stem}.svg").write_text(_chart(report, medians, names), encoding="utf-8")
    return page


def bars_table(bars: list[Bar]) -> str:
    """The bars as a table."""
    rows = [
        [bar.what, _number(bar.value, bar.unit), f"{bar.bar:g}{bar.unit}", f"{bar.stretch:g}{bar.unit}", bar.verdict]
        for bar in bars
    ]
    return _table(["", "measured", "bar", "stretch", "verdict"], rows)


def _facts(report: Report, medians: Medians) -> dict[str, Any]:
    bars = [msgspec.structs.asdict(bar) | {"verdict": bar.verdict} for bar in judge(medians)]
    return msgspec.structs.asdict(report) | {"bars": bars}


def _page(report: Report, medians: Medians, names: list[str], stem: str) -> str:
    findings = report.findings
    parts = [
        f"# Benchmark of {report.date}{' (quick)' if report.quick else ''}",
        f"{report.machine}. Client: {report.client}, same machine. Medians of {findings.rounds} round(s). {_NOTE}",
        "Servers: " + ", ".join(f"{name} {version}" for name, version in report.servers.items()) + ".",
        "## What had to come out",
        bars_table(judge(medians)),
        f"![tools/call of echo]({stem}.svg)",
        "## Calls per second, p50 / p99",
        *(_operation(medians, names, operation) for operation in _OPERATIONS),
        "## Beside a crowd",
        _crowds(medians),
        "## Memory and start",
        _gauges(medians, names),
    ]
    problems = [*(f"{name} was skipped: {why}" for name, why in report.skipped.items()), *findings.problems]
    if problems:
        parts += ["## What went wrong", "\n".join(f"- {each}" for each in problems)]
    return "\n\n".join(parts) + "\n"


def _operation(medians: Medians, names: list[str], operation: str) -> str:
    rows = []
    for name in names:
        cells = [_cell(medians, name, operation, clients) for clients in CLIENTS]
        if any(cells):
            rows.append([name, *(cell or _NONE for cell in cells)])
    if not rows:
        return f"### {operation}\n\nNot measured."
    heads = [f"{clients} client{'s' if clients > 1 else ''}" for clients in CLIENTS]
    return f"### {operation}\n\n" + _table(["", *heads], rows)


def _cell(medians: Medians, name: str, operation: str, clients: int) -> str:
    rate = medians.figure(name, operation, clients)
    if rate is None:
        return ""
    p50, p99 = (medians.figure(name, operation, clients, field) or 0 for field in ("p50", "p99"))
    return f"**{rate:,.0f}** {p50:,.0f} / {p99:,.0f}"


def _crowds(medians: Medians) -> str:
    rows = [
        [label, _cell(medians, "a2mcp", operation, 16) or _NONE]
        for label, operation in (
            ("alone", "echo alone"),
            ("beside 1,000 hanging calls", "echo beside hanging"),
            ("beside 900 idle connections", "echo beside idle"),
            ("beside 20 pages and 20 terminals that watch", "echo beside watching"),
        )
    ]
    return _table(["echo, 16 clients", "a2mcp"], rows)


def _gauges(medians: Medians, names: list[str]) -> str:
    columns = ("startup ms", "memory idle MB", "memory after load MB", "memory hanging MB")
    rows = [[name, *(_number(medians.gauge(name, column), "") for column in columns)] for name in names]
    bare = _number(medians.gauge("a2mcp", "bare bash ms"), " ms")
    return _table(["", *columns], rows) + f"\n\n`bash -c true` by bare `subprocess.run`: {bare} (p50)."


def _chart(report: Report, medians: Medians, names: list[str]) -> str:
    series = [Series(name, tuple(medians.figure(name, "echo", clients) for clients in CLIENTS)) for name in names]
    note = f"calls per second, more is better · {report.date} · {report.machine}"
    return comparison(
        "tools/call of an echo tool", note, [f"{c} client{'s' if c > 1 else ''}" for c in CLIENTS], series
    )


def _number(value: float | None, unit: str) -> str:
    return _NONE if value is None else f"{value:,.2f}{unit}" if abs(value) < 10 else f"{value:,.0f}{unit}"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
