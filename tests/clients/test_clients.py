"""Somebody else's clients list the tools and call one, on `/` and on `/mcp`. `make clients` installs them."""

from __future__ import annotations

from pathlib import Path

import client_cases as cases
import pytest

PAGE = cases.ROOT / "docs" / "reference" / "clients.md"


def parametrized(attribute: str):
    wanted = [case for case in cases.CASES if getattr(case, attribute) is not None]
    return pytest.mark.parametrize("case", wanted, ids=lambda case: case.name)


def drive(case: cases.Case, path: str, daemon, folder: Path) -> cases.Outcome:
    if case.missing:
        pytest.skip(f"not installed: {', '.join(case.missing)} (make clients)")
    outcome = cases.run(case, path, daemon, folder)
    assert outcome.listed, outcome.output
    assert outcome.called == case.calls, outcome.output
    return outcome


@pytest.mark.client
@parametrized("bridge")
def test_a_client_lists_and_calls_on_the_bridge(case, shared_daemon, tmp_path):
    """Issue, "What it must show": each real client lists and calls on `/`."""
    assert drive(case, "/", shared_daemon, tmp_path).version == case.bridge


@pytest.mark.client
@parametrized("mcp")
def test_a_client_lists_and_calls_on_mcp_in_its_version(case, shared_daemon, tmp_path):
    """Issue, "What it must show": each real client connects with the bearer; those that can call, call."""
    assert drive(case, "/mcp", shared_daemon, tmp_path).version == case.mcp


def test_every_client_is_on_the_page_that_says_what_works():
    """Ours: the page is what was measured, and nothing is left out of it."""
    page = PAGE.read_text("utf-8")
    assert [case.name for case in cases.CASES if f"| {case.name} |" not in page] == []
