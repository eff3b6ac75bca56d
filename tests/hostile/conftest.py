"""What holds after every hostile row: the daemon serves a stranger at once, and weighs and holds what it did before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import wire
from harness import Daemon, until

if TYPE_CHECKING:
    from collections.abc import Iterator

WEIGHT = 1.10
"""Of the memory before a row, what there may be after it."""
DESCRIPTORS = 3
"""More than before a row that may still be open after it."""


@pytest.fixture(scope="module")
def victim(shared_daemon: Daemon) -> Daemon:
    """The daemon that the rows of a module are tried on. A module with settings of its own has another."""
    return shared_daemon


@pytest.fixture(scope="module")
def warm(victim: Daemon) -> Daemon:
    """The same, once it has loaded what any request makes it load, so that a row is only blamed for what it leaves."""
    client = victim.session()
    for tool, arguments in (
        ("read", {"path": "/"}),
        ("bash", {"command": "true"}),
        ("no-such", {}),
        ("read", {"path": 5}),
    ):
        client.call(tool, **arguments)
    for body in (b"{", b"[]", b'{"a":' * 2000, b'{"jsonrpc":"2.0","method":"' + b"m" * 1_000_000 + b'"}'):
        client.post(body)
    victim.raw(wire.head("GET / HTTP/1.1", "Host: 127.0.0.1"))
    until((victim.home / "events.db-wal").exists, what="the store of events is open")
    return victim


@pytest.fixture(autouse=True)
def _alive_afterwards(warm: Daemon) -> Iterator[None]:
    """Section 3, "alive": a fresh session and ping within a second each, memory and descriptors back, nothing broken."""
    weight, held = warm.rss_mb, warm.descriptors
    yield
    warm.alive()
    until(lambda: warm.descriptors <= held + DESCRIPTORS, what=f"descriptors back to {held}")
    until(lambda: warm.rss_mb <= weight * WEIGHT, what=f"memory back to {weight:.0f} MB")
    warm.audit()  # Every line is JSON.
    for fault in ("Traceback", "uncaptured", "internal error"):
        assert fault not in warm.stderr
