"""The product's own daemon with the fixture's tools, resources and prompts beside its own ones.

Run as a script in the place of ``a2mcp serve``. Arguments as ``SLOW_S=0.2`` shorten what a test would have to wait for:
``SLOW_S`` is when a slow answer becomes a stream, ``COMMENT_S`` how long a stream is silent, ``PAGE`` how many items a
page of a list has.
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
    for name, _, value in (argument.partition("=") for argument in sys.argv[1:]):
        module = pages if name == "PAGE" else parked
        setattr(module, name, type(getattr(module, name))(value))
    shelf = FixtureShelf()
    hosts = (FixtureHost(), LibraryHost(shelf, Nothing))
    sys.exit(serve(home_from_environment(os.environ), hosts=hosts, shelves=(shelf,)))
