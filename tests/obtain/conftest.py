"""What the tests of fetching share: a server of assets, and the places of a home."""

import pytest
from asset_server import serving

from a2mcp.obtain.programs import Places


@pytest.fixture
def assets():
    """A loopback server."""
    with serving() as started:
        yield started


@pytest.fixture
def places(tmp_path):
    """Where things are put."""
    return Places(folder=tmp_path / "bin", record=tmp_path / "installs.json", pins=tmp_path / "pins.json")
