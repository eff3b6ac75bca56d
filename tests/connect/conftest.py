"""What the tests of the connecting side share: a user's folders, and a server that says what a test wants."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from scripted_server import Scripted

from a2mcp.connect.clients import place


@pytest.fixture
def user(tmp_path):
    """The folders of a user who has nothing yet."""
    home = tmp_path / "user"
    home.mkdir()
    return place({"HOME": str(home)}, "linux")


@pytest.fixture
def scripted():
    """A server on loopback that answers as it is told."""
    server = Scripted()
    yield server
    server.close()
