"""The page on security says of every row what holds and where it is tried, or why it is not."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from harness import ROOT
from plan import PUBLISHED, ROWS

PAGE = ROOT / "docs" / "explanation" / "security.md"
TEXT = PAGE.read_text("utf-8")
ID = re.compile(r"\b[A-Z]\d\d\b")
WHY_NOT = ("not built", "not tried", "does not apply")


def _table(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading."""
    part = TEXT.split(f"## {heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", part, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]


TRIED = {name: cells for cells in _table("What is tried") for name in ID.findall(cells[0])}
HOLES = _table("Holes that others had")


def test_every_row_has_its_line_and_no_line_is_of_another() -> None:
    """Issue 5, item 1: each row is a test, or listed with the reason why not."""
    named = Counter(name for cells in _table("What is tried") for name in ID.findall(cells[0]))

    assert sorted(named) == sorted(ROWS)
    assert set(named.values()) == {1}


@pytest.mark.parametrize("name", ROWS)
def test_what_is_named_tries_the_row(name: str) -> None:
    """Issue 5, item 1: where a row is tried, its id stands in the test; where it is not, the line says why."""
    _, tried, holds, where = TRIED[name]
    files = re.findall(r"\]\((\.\./\.\./tests/[\w/]+\.py)\)", where)

    assert tried
    assert holds
    assert files or holds.startswith(WHY_NOT), "neither a test nor a reason"
    for file in files:
        assert re.search(rf"\b{name}\b", (PAGE.parent / file).resolve().read_text("utf-8")), f"{file} does not name it"


def test_every_published_hole_leads_to_a_row() -> None:
    """Issue 5, item 1: the check that each of them gives us exists."""
    text = " ".join(cells[0] for cells in HOLES)
    led_to = {name for cells in HOLES for name in ID.findall(cells[2])}

    assert sorted(re.findall(r"CVE-\d{4}-\d+|GHSA-\w{4}-\w{4}-\w{4}", text)) == sorted(PUBLISHED)
    assert led_to <= set(ROWS)
    assert all(ID.findall(cells[2]) for cells in HOLES)
