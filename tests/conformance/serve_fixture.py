"""The product's own daemon with the fixture's tools, resources and prompts beside its own ones.

Run as a script in the place of ``a2mcp serve``. ``SLOW_S`` and ``COMMENT_S`` in the environment shorten what a test
would have to wait for: when a slow answer becomes a stream, and how long a stream is silent; ``PAGE`` the lists.
"""

from __future__ import annotations

import os
import sys

from fixture_library import FixtureShelf, LibraryHost
from fixture_tools import FixtureHost, Nothing

from a2mcp.__main__ import serve
from a2mcp.config.paths import home_from_environment
from a2mcp.http.server import parked
from a2mcp.protocol import pages

if __name__ == "__main__":
    for name in ("SLOW_S", "COMMENT_S"):
        setattr(parked, name, float(os.environ.get(name, getattr(parked, name))))
    pages.PAGE = int(os.environ.get("PAGE", pages.PAGE))
    shelf = FixtureShelf()
    hosts = (FixtureHost(), LibraryHost(shelf, Nothing))
    sys.exit(serve(home_from_environment(os.environ), hosts=hosts, shelves=(shelf,)))
