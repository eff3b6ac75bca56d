"""A log, and what writes it, for the tests of both its sides: the file and the chain."""

import pytest

from a2mcp.audit.journal import Journal
from a2mcp.clock import SystemClock


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a2mcp.log"


@pytest.fixture
def said():
    return []


@pytest.fixture
def make(path, said):
    """Make journals that look at the path before each group, and close them in the end."""
    made = []

    def make(where=path, **options):
        journal = Journal(where, **{"clock": SystemClock(), "report": said.append, "check_s": 0, **options})
        made.append(journal)
        return journal

    yield make
    for journal in made:
        journal.close()
