"""What holds after every hostile row: the daemon serves a stranger at once, and weighs and holds what it did before."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import Daemon, until
from warming import warmed

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).parents[1] / "flows"))

WEIGHT = 1.10
"""Of the memory before a row, what there may be after it."""
DESCRIPTORS = 3
"""More than before a row that may still be open after it."""


@pytest.fixture(scope="module")
def victim(shared_daemon: Daemon) -> Daemon:
    """The daemon that the rows of a module are tried on. A module with settings of its own has another."""
    return shared_daemon


@pytest.fixture(scope="module")
def warm(victim: Daemon) -> Daemon:
    """The same, once it is warm. A module that needs a fresh daemon for each test has another."""
    return warmed(victim)


@pytest.fixture(scope="module")
def spare_mb() -> float:
    """What a row may leave beyond that; a module whose rows start threads and load modules says how much they weigh."""
    return 0.0


@pytest.fixture(autouse=True)
def _alive_afterwards(warm: Daemon, spare_mb: float) -> Iterator[None]:
    """Section 3, "alive": a fresh session and ping within a second each, memory and descriptors back, nothing broken."""
    weight, held = warm.rss_mb, warm.descriptors
    yield
    warm.alive()
    until(lambda: warm.descriptors <= held + DESCRIPTORS, what=f"descriptors back to {held}")
    until(lambda: warm.rss_mb <= weight * WEIGHT + spare_mb, what=f"memory back to {weight:.0f} MB")
    warm.audit()  # Every line is JSON.
    for fault in ("Traceback", "uncaptured", "internal error"):
        assert fault not in warm.stderr
