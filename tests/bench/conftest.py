"""The small server of ``bench_server``, as a fixture."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest
from bench_server import Behaviour, FakeServer, result

# ``benchmarks`` is no part of the installed package: it is found beside it.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


@pytest.fixture
def serve():
    """Start a server with a behaviour; all of them are closed after the test."""
    with contextlib.ExitStack() as stack:

        def start(behave: Behaviour = result) -> FakeServer:
            server = FakeServer(behave)
            stack.callback(server.close)
            return server

        yield start
