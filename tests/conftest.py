"""What every test may use: a daemon in a process of its own, for the module or for the test, and each of the searchers."""

from __future__ import annotations

import gc
import signal
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import Daemon, running

from a2mcp.host import ripgrep

# A shell without job control lets what it puts in the background ignore Ctrl-C, nohup lets it ignore the end of the
# terminal, and a child inherits that: the tests that send these signals to one would wait for nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# How long an example takes, or is made, says nothing where others have the processor. Tests of time have bars of their own.
hypothesis.settings.register_profile("shared", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("shared")

if TYPE_CHECKING:
    from collections.abc import Iterator


LANES = {
    "heavy": ("faults/", "soak/test_soak_kill.py"),
    "alone": ("soak/", "hostile/test_hostile_ping.py"),
}
"""What puts on the load at which others miss their deadlines, or misses its own. All else is in the lane ``light``; of two that
name a file, the first has it."""
WAITING = (
    "ui/",
    "flows/test_flow_standard_streams.py",
    "stdio/test_stdio_process.py",
    "http/test_http_raw_connections.py",
    "flows/test_flow_resources.py",
)
"""What does next to nothing for seconds, in this order. All of it comes first, so that one worker waits while the others have
the processors; at the end all would wait for the one that has got such a test. A browser serves the tests of one worker."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the files of other lanes unread: to read every test takes seconds, and for each worker again."""
    lane = config.getoption("markexpr")
    if lane not in {*LANES, "light"} or collection_path.is_dir():
        return None
    return True if _lane_of(collection_path) != lane else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its lane, and begin with those that wait."""
    for item in items:
        item.add_marker(_lane_of(item.path))
    items.sort(key=lambda item: _turn_of(item.path))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Make thousands of tests without looking for garbage among them; they stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@cache
def _lane_of(file: Path) -> str:
    return next((lane for lane, files in LANES.items() if _name(file).startswith(files)), "light")


@cache
def _turn_of(file: Path) -> int:
    return next((turn for turn, files in enumerate(WAITING) if _name(file).startswith(files)), len(WAITING))


def _name(file: Path) -> str:
    return file.relative_to(Path(__file__).parent).as_posix()


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


@pytest.fixture(params=["ripgrep", "built-in"])
def searcher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with each of the two searchers."""
    if request.param == "built-in":
        monkeypatch.setattr(ripgrep, "find", lambda: None)
    elif ripgrep.find() is None:
        pytest.skip("no ripgrep here")
    return str(request.param)
