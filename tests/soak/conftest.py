"""Load for a long time: the short form in ``make test``, the long one with ``A2MCP_TEST_LONG=1`` (``make soak``).

What was measured is printed at the end. The long form writes it down where ``A2MCP_SOAK_PAGES`` says, too.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "flows"))

from figures import LONG, Figures, page

if TYPE_CHECKING:
    from collections.abc import Iterator

SOCKETS = 4000
LONG_TIMEOUT_S = 1800

_MEASURED = pytest.StashKey[dict[str, Figures]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the place for what is measured."""
    config.stash[_MEASURED] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the long form the time it takes."""
    here = Path(__file__).parent
    for item in items:
        if LONG and item.path.is_relative_to(here):
            item.add_marker(pytest.mark.timeout(LONG_TIMEOUT_S))


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """Where a test notes what it measured."""
    noted = Figures()
    request.config.stash[_MEASURED][request.node.name] = noted
    return noted


@pytest.fixture(autouse=True)
def _sockets() -> Iterator[None]:
    """Room for thousands of sockets in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < SOCKETS:
        pytest.skip("the limit on open files is too low here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, SOCKETS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    """Print what was measured, and write the page of a long run in which everything passed."""
    measured = config.stash[_MEASURED]
    if not measured:
        return
    terminalreporter.section("measured")
    text = page(measured, passed=exitstatus == 0)
    terminalreporter.write_line(text)
    folder = os.environ.get("A2MCP_SOAK_PAGES")
    if folder and LONG and exitstatus == 0:
        from figures import today

        path = Path(folder) / f"soak-{today()}.md"
        path.write_text(text, encoding="utf-8")
        terminalreporter.write_line(f"written: {path}")
