"""The promises of SECURITY.md: seven of them, each with tests that are there and run, and the same in the README."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from harness import ROOT

NUMBERS = ["P1", "P2", "P3", "P4", "P5", "P6", "P7"]
SECURITY = (ROOT / "SECURITY.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def sections(text: str) -> dict[str, str]:
    """What is said of each promise, up to the next one or the next heading."""
    part = text.split("## Seven promises", 1)[1].split("\n## ", 1)[0]
    found = re.split(r"^\*\*(P\d)\. ", part, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def named_tests() -> list[tuple[str, str, str]]:
    """The tests that are named: promise, file and function."""
    return [
        (number, path, test)
        for number, said in sections(SECURITY).items()
        for path, test in re.findall(r"^- `(tests/[\w/]+\.py)::(\w+)`$", said, re.MULTILINE)
    ]


@cache
def functions(path: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_there_are_seven_promises_and_each_names_a_test():
    """Issue 5: the promises stand in README and SECURITY.md, each with the test that proves it."""
    assert list(sections(SECURITY)) == NUMBERS
    assert sorted({number for number, _, _ in named_tests()}) == NUMBERS
    assert len(named_tests()) == SECURITY.count("::test_"), (
        "a test that is named in another form would not be looked for"
    )


@pytest.mark.parametrize(("number", "path", "test"), named_tests())
def test_a_test_that_is_named_is_there_and_runs(number: str, path: str, test: str):
    """Issue 5: a promise without a test is a wish."""
    function = functions(path)[test]
    assert test.startswith("test_")
    marks = [ast.unparse(mark) for mark in function.decorator_list]
    assert not [mark for mark in marks if "mark.skip(" in mark or "xfail" in mark]
    assert [node for node in ast.walk(function) if isinstance(node, ast.Assert | ast.Call)], "it does nothing"


def test_the_readme_says_the_same_in_short():
    """Issue 5: README's safety section states the promises and links SECURITY.md."""
    part = README.split("## What it costs you in safety", 1)[1].split("\n## ", 1)[0]
    assert re.findall(r"^- \*\*(P\d)\*\*", part, re.MULTILINE) == NUMBERS
    assert "(SECURITY.md)" in part
    for number, said in sections(SECURITY).items():
        short = re.search(rf"^- \*\*{number}\*\* (\S+ \S+)", part, re.MULTILINE)
        assert short is not None
        assert said.startswith(short[1])
