"""What a soak measures: the daemon's memory, threads and descriptors over time, and how it is told.

``LONG`` chooses between the two forms of every test here.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.report import machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness import Daemon

LONG = os.environ.get("A2MCP_TEST_LONG") == "1"


def of(short: int, long: int) -> int:
    """A number by the form that runs."""
    return long if LONG else short


class Figures:
    """What one test measured, in the order in which it noted it."""

    def __init__(self) -> None:
        self.noted: dict[str, str] = {}

    def note(self, **values: float | str) -> None:
        """Note numbers; an underscore in a name is a space."""
        for name, value in values.items():
            self.noted[name.replace("_", " ")] = value if isinstance(value, str) else f"{value:,.10g}"


class Course:
    """How a daemon fared: samples of its memory (MB), threads and descriptors, taken when nothing is in flight."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.rss: list[float] = []
        self.threads: list[int] = []
        self.descriptors: list[int] = []

    def sample(self) -> None:
        """Take one of each."""
        self.rss.append(self._daemon.rss_mb)
        self.threads.append(threads(self._daemon))
        self.descriptors.append(self._daemon.descriptors)

    def growth_mb(self) -> float:
        """How much more memory the last third of the samples has than the third before; the first is warming up."""
        third = len(self.rss) // 3
        return fmean(self.rss[-third:]) - fmean(self.rss[-2 * third : -third])

    def note_in(self, figures: Figures) -> None:
        """Note the course, and how much it grew after the warm-up."""
        step = max(1, len(self.rss) // 10)
        figures.note(
            memory_at_each_tenth_MB=" ".join(f"{each:.1f}" for each in self.rss[::step]),
            memory_at_the_end_MB=f"{self.rss[-1]:.1f}",
            growth_of_the_last_third_MB=f"{self.growth_mb():.2f}",
            threads=f"{self.threads[0]} to {self.threads[-1]}",
            descriptors=f"{self.descriptors[0]} to {self.descriptors[-1]}",
        )


def threads(daemon: Daemon) -> int:
    """How many threads the daemon has."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(re.search(r"Threads:\s+(\d+)", status).group(1))  # type: ignore[union-attr]


def in_flight(daemon: Daemon) -> int:
    """How many calls run or wait."""
    client = daemon.client()
    text = client.send("GET", "/metrics").body.decode()
    client.close()
    return int(re.search(r"^a2mcp_calls_in_flight (\d+)", text, re.MULTILINE).group(1))  # type: ignore[union-attr]


def today() -> str:
    """The date of a run."""
    return datetime.now(UTC).date().isoformat()


def page(measured: Mapping[str, Figures], *, passed: bool) -> str:
    """Write what was measured, a table for each test."""
    form = "long" if LONG else "short"
    verdict = "Every test passed its bars." if passed else "Not every test passed its bars."
    lines = [f"# Soak of {today()}", "", f"{machine()}. The {form} form, by `make soak`. {verdict}", ""]
    for name, figures in measured.items():
        if not figures.noted:
            continue
        title = name.removeprefix("test_").replace("_", " ")
        lines += [f"## {title[0].upper()}{title[1:]}", "", "| | |", "| --- | ---: |"]
        lines += [f"| {what} | {value} |" for what, value in figures.noted.items()]
        lines.append("")
    return "\n".join(lines)
