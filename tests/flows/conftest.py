"""Daemons that tests share: with the fixture of the conformance suite, with an agent, and without a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import Daemon, running
from standard_client import FIXTURE, Standard, fixture_argv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents import Agents

sys.path.insert(0, str(Path(FIXTURE).parent))


@pytest.fixture(scope="module")
def fixture_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that the tests of a module share; what is slow or silent is so after a fraction of a second."""
    argv = fixture_argv("SLOW_S=0.2", "COMMENT_S=0.2")
    with running(tmp_path_factory.mktemp("fixture") / "home", argv=argv) as started:
        yield started


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    """The daemon of all tests that need no other settings: the first turn of each loads the library anew."""
    from agents import BAD_KEYS, EAGER, hosting

    keys = {name: key for name, (key, _) in BAD_KEYS.items()}
    home = tmp_path_factory.mktemp("agents") / "home"
    with hosting(home, keys=keys, settings=EAGER, argv=fixture_argv()) as started:
        yield started


@pytest.fixture(scope="session")
def without_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that has no agent, and would wake one."""
    from agents import EAGER

    with running(tmp_path_factory.mktemp("without") / "home", settings=EAGER) as started:
        yield started


@pytest.fixture
def agents(shared: Agents) -> Agents:
    """The daemon that tests share, allowed to ask, with a provider that has only this to say."""
    shared.allow()
    return shared


@pytest.fixture
def mcp(fixture_daemon: Daemon) -> Iterator[Standard]:
    """A connection to ``/mcp``; a ping works after every test."""
    client = Standard(fixture_daemon)
    yield client
    client.close()
    fresh = Standard(fixture_daemon, timeout=5)
    fresh.alive()
    fresh.close()
