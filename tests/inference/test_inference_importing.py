"""Importing what is large and stays: the collector has nothing to do with it."""

from __future__ import annotations

import gc

import pytest

from a2mcp.inference.importing import importing


def test_what_is_loaded_is_never_looked_through():
    """Ours: a collection that takes 0.2 s holds up everybody."""
    before = gc.get_freeze_count()
    with importing("no.such.module.yet"):
        assert not gc.isenabled()
        made = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(made)


def test_what_fails_to_load_leaves_the_collector_as_it_was():
    """Ours: an extra may be missing."""
    before = gc.get_freeze_count()
    with pytest.raises(ImportError), importing("no.such.module.yet"):
        raise ImportError
    assert gc.isenabled()
    assert gc.get_freeze_count() == before


def test_what_is_there_already_costs_nothing():
    """Ours: a turn makes a model for each request; what lives for a request must not stay for ever."""
    before = gc.get_freeze_count()
    with importing("gc"):
        assert gc.isenabled()
    assert gc.get_freeze_count() == before
