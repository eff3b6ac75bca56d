"""Faults: what breaks in the system around the daemon."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "flows"))

from inflight import WITH_TOOLS
from live import Live
from operations import ASKS_FIRST, SMALL_LOG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FAULTS = "faults"
"""The property of a report that says what became of them. Reports come from other processes, too."""


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[dict[str, int]], None]:
    """Say how often each outcome came; told at the end."""
    return partial(record_property, FAULTS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what became of the faults."""
    told = [
        (report.nodeid.rpartition("::")[2], outcomes)
        for report in terminalreporter.getreports("passed")
        for name, outcomes in report.user_properties
        if (report.when, name) == ("call", FAULTS)
    ]
    if told:
        terminalreporter.section("faults")
    for name, outcomes in told:
        parts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        terminalreporter.write_line(f"{name}: {sum(outcomes.values())} faults: {parts}")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """A daemon whose log rotates every few calls."""
    settings = {"port": 0, "audit": {"bytes": SMALL_LOG}, "approval": ASKS_FIRST}
    daemon = Live(tmp_path / "home", argv=WITH_TOOLS, settings=settings).begin()
    try:
        yield daemon
    finally:
        daemon.kill()
