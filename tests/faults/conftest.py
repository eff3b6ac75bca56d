"""Faults: what breaks in the system around the daemon."""

from __future__ import annotations

import sys
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

_TOLD = pytest.StashKey[dict[str, dict[str, int]]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the place for what became of the faults."""
    config.stash[_TOLD] = {}


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[dict[str, int]], None]:
    """Say how often each outcome came; told at the end."""

    def told(outcomes: dict[str, int]) -> None:
        request.config.stash[_TOLD][request.node.name] = outcomes

    return told


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what became of the faults."""
    told = config.stash[_TOLD]
    if told:
        terminalreporter.section("faults")
    for name, outcomes in told.items():
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
