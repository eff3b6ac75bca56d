"""What the tests of the command line share: a home, a daemon that only remembers, and the command itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from a2mcp.cli.main import cli
from a2mcp.config.paths import home_from_environment

sys.path.insert(0, str(Path(__file__).parent))

from fake_daemon import ROOT, Channel, Fake


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Name a home, and put it into the environment."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("A2MCP_HOME", str(folder))
    for name in ("A2MCP_CONFIG", "A2MCP_AUDIT", "A2MCP_INSTALLS"):
        monkeypatch.delenv(name, raising=False)
    return home_from_environment({"A2MCP_HOME": str(folder)})


@pytest.fixture
def port():
    """What the daemon's living side is asked."""
    return Fake()


@pytest.fixture
def served(home, port):
    """Serve the operator's channel of the home."""
    channel = Channel(home, port)
    yield port
    channel.close()


@pytest.fixture
def run():
    """Run the command in this process, as it behaves in a pipe."""

    def call(*args, **obj):
        return CliRunner().invoke(cli, list(args), obj=obj, prog_name="a2mcp")

    return call


@pytest.fixture
def shell(home):
    """Run the command in a process of its own."""

    def call(*args, **environment):
        program = "from a2mcp.cli.main import cli; cli(obj={}, prog_name='a2mcp')"
        return subprocess.run(
            [sys.executable, "-c", program, *args],
            env={**os.environ, "A2MCP_HOME": str(home.root), "PYTHONPATH": str(ROOT), **environment},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    return call
