"""Turns are short as long as anybody computes, and as they were afterwards."""

from __future__ import annotations

import sys

import pytest

from a2mcp.host import switchinterval


def test_the_last_who_computes_gives_the_usual_turns_back() -> None:
    """P4: blocks overlap on several threads, and end in any order."""
    usual = sys.getswitchinterval()
    with switchinterval.short(), switchinterval.short():
        switchinterval.change(1)
        assert sys.getswitchinterval() == pytest.approx(switchinterval.SHORT_S)
    assert sys.getswitchinterval() == pytest.approx(switchinterval.SHORT_S)
    switchinterval.change(-1)

    assert sys.getswitchinterval() == pytest.approx(usual)
    assert usual > switchinterval.SHORT_S


def test_a_block_that_breaks_counts_no_longer() -> None:
    """Ours."""
    usual = sys.getswitchinterval()
    with pytest.raises(ZeroDivisionError), switchinterval.short():
        raise ZeroDivisionError

    assert sys.getswitchinterval() == pytest.approx(usual)
