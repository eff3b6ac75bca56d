"""The table at the top of ``actors`` is what a newcomer reads first, so it must be true."""

from __future__ import annotations

import importlib

import pytest

import actors
from actors import system

MODULES = {"AuditWriter": "audit"}
_TABLE = (actors.__doc__ or "").split("\n\n")[1]
ROWS = {line.split()[0]: line for line in _TABLE.splitlines()}


@pytest.mark.parametrize(
    "name",
    [
        "Sessions",
        "AuditWriter",
        "Executor",
        "Worker",
        "Jobs",
        "Gate",
        "Fetcher",
        "Tunnel",
        "Xfer",
        "Inference",
        "Agents",
        "Agent",
        "Supervisor",
    ],
)
def test_the_overview_has_the_size_of_every_mailbox(name: str) -> None:
    """STYLE 12: every buffer has a chosen size; STYLE 14: docs are tests."""
    kind = getattr(importlib.import_module(f"actors.{MODULES.get(name, name.lower())}"), name)

    assert f" {kind.MAILBOX:,} " in ROWS[name]


def test_every_actor_that_is_started_is_in_the_overview() -> None:
    """STYLE 14: docs are tests."""
    assert {kind.__name__ for kind in system.ORDER} <= ROWS.keys()
