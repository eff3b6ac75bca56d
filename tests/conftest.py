"""What every test may use: a daemon in a process of its own, one for the module or one for the test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import Daemon, running

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with the default settings, for this test alone."""
    with running(tmp_path / "home") as started:
        yield started


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with the default settings that the tests of a module share; still alive after each of them."""
    with running(tmp_path_factory.mktemp("shared") / "home") as started:
        yield started
