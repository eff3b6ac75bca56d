"""The shape of the code, where a linter does not look: sizes, rims, directions, and what must not be in a file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest
from harness import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git lists the files")

LINES_OF_A_FILE = 300
LINES_OF_A_FUNCTION = 40

LONGER_FILES = {
    "a2mcp/errors.py": "the one tree of errors, a list to look things up in",
    "a2mcp/connect/mcp_call.py": "a client in one file, to be copied to any machine",
    "a2mcp/http/server/channel.py": "one connection: the class extends Waitress's and cannot be cut where it is not",
}
LONGER_FUNCTIONS = {
    "a2mcp/http/server/server.py __init__": "fills in what Waitress's class asks for, one line each",
    "actors/daemon.py __init__": "the order in which the parts of the process are made, one line each",
}

RIMS = {
    "a2mcp/host/loop.py": "what a watched descriptor's callback raises must not end the loop of all commands",
    "a2mcp/host/run.py": "one watcher of a command must not keep the others from being told",
    "a2mcp/http/server/server.py": "the loop, its tick and the thread of bodies go on",
    "a2mcp/http/server/workers.py": "one job must not end the thread",
    "a2mcp/http/server/task.py": "the app's answer, when even its error handlers broke",
    "a2mcp/inference/turn.py": "a fault of the agent's library ends its turn and no more",
    "a2mcp/inference/sample.py": "the same of one question to a model",
    "a2mcp/tools/call.py": "the rim of every tool",
    "actors/audit.py": "a record must not fail a call",
    "actors/events.py": "a watcher or a store that breaks must not end what is observed",
    "actors/inference.py": "whatever keeps the switch from being turned is an answer and a record",
    "actors/jobs.py": "a step that breaks still completes its call",
    "actors/kit.py": "the rim of every actor",
    "actors/sightings.py": "an event that cannot be made costs itself",
    "actors/supervisor.py": "what a dead actor left behind must not end the supervisor",
}
"""Where anything may be caught and not raised again."""

DOCSTRING = re.compile(r'(?:#.*\n|\n)*r?"""[^\s"]')
"""How a module begins that says first what it is."""

SOURCE = ("a2mcp", "actors", "benchmarks")


@cache
def tracked() -> tuple[Path, ...]:
    """The files under version control that are there."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return tuple(path for path in paths if path.is_file())


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def python(*folders: str) -> list[Path]:
    return [path for path in tracked() if path.suffix == ".py" and name(path).split("/")[0] in folders]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_file_is_longer_than_a_reader_keeps_in_mind():
    """STYLE 1: about 300 lines; a longer one says why."""
    longer = {name(path) for path in python(*SOURCE) if len(path.read_text("utf-8").splitlines()) > LINES_OF_A_FILE}
    assert longer <= set(LONGER_FILES)


def test_no_function_is_longer_than_a_screen():
    """STYLE 1: 40 lines at most."""
    longer = {
        f"{name(path)} {node.name}"
        for path in python(*SOURCE)
        for node in functions(path)
        if length(node) > LINES_OF_A_FUNCTION
    }
    assert longer <= set(LONGER_FUNCTIONS)


def test_most_functions_are_short():
    """STYLE 1: near seven lines at the median."""
    lengths = sorted(length(node) for path in python("a2mcp", "actors") for node in functions(path))
    assert lengths[len(lengths) // 2] <= 8


def test_every_module_begins_with_what_it_is():
    """STYLE 2: the module docstring comes first."""
    silent = [name(path) for path in python(*SOURCE, "tests") if not DOCSTRING.match(path.read_text("utf-8"))]
    assert silent == []


def catches_anything(handler: ast.ExceptHandler) -> bool:
    """Whether it catches every exception and does not raise again."""
    if isinstance(handler.type, ast.Name) and handler.type.id not in {"Exception", "BaseException"}:
        return False
    broad = handler.type is None or isinstance(handler.type, ast.Name)
    last = handler.body[-1]
    return broad and not (isinstance(last, ast.Raise) and last.exc is None)


def test_anything_is_caught_at_the_rims_only():
    """STYLE 8: a clean-up that raises again is no rim."""
    found = Counter(
        name(path)
        for path in python(*SOURCE)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ExceptHandler) and catches_anything(node)
    )
    assert set(found) <= set(RIMS)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_what_the_product_knows_imports_nothing_that_lives():
    """DESIGN §4: only the place where the program is put together does."""
    guilty = {name(path) for path in python("a2mcp") for module in imports(path) if module.split(".")[0] == "actors"}
    assert guilty == {"a2mcp/__main__.py"}


STARTERS = {
    "a2mcp/host/process.py": "launch: marked, in a session of its own, without our descriptors and secrets",
    "a2mcp/tunnel/leash.py": "becomes the program that it was started for",
}
"""Where the daemon may start a program."""


def starts_a_program(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    module, called = getattr(node.func.value, "id", ""), node.func.attr
    forks = called.startswith(("fork", "exec", "spawn", "posix_spawn")) or called in {"system", "popen"}
    return module == "subprocess" or (module == "os" and forks)


def test_the_daemon_starts_programs_in_one_way_only():
    """P6 and P7: what is started in another way is in nobody's care, and may inherit what it should not."""
    files = [path for path in python("a2mcp", "actors") if not name(path).startswith(("a2mcp/cli/", "a2mcp/connect/"))]
    found = {name(path) for path in files if any(map(starts_a_program, ast.walk(parsed(path))))}
    assert found == set(STARTERS)


@pytest.mark.parametrize(
    ("module", "only"),
    [
        ("pykka", {"actors/kit.py", "actors/ref.py"}),
        ("falcon", {"a2mcp/http/"}),
        ("waitress", {"a2mcp/http/"}),
    ],
)
def test_a_library_is_spoken_in_one_place(module, only):
    """DESIGN §4: what would have to change with the library is in one place."""
    speakers = {
        name(path)
        for path in python("a2mcp", "actors")
        if any(found.split(".")[0] == module for found in imports(path))
    }
    assert [speaker for speaker in speakers if not any(speaker.startswith(place) for place in only)] == []


def test_the_daemon_loads_neither_its_documentation_nor_its_benchmark_nor_its_command_line():
    """Issue, "What it must show": start and memory; what only other commands need is not in the daemon."""
    listed = subprocess.run(
        [sys.executable, "-c", "import actors.daemon, sys; print(*sys.modules, sep='\\n')"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(listed.stdout.split())
    assert "actors.daemon" in loaded
    for absent in (
        "a2mcp.reference",
        "a2mcp.bench",
        "a2mcp.cli",
        "a2mcp.connect",
        "click",
        "rich",
        "PIL",
        "charset_normalizer",
        "httpx2",
        "pydantic",
        "pydantic_ai",
        "sqlite3",
    ):
        assert absent not in loaded


PLACES = re.compile(rb"(?<![\w.$}/~-])/(?:work|ro" + rb"ot)\b|/tm" + rb"p/(?!x\.json)")
LATER = re.compile(rb"\b(?:TO" + rb"DO|FIX" + rb"ME|XX" + rb"X)\b(?! without an issue)")


def texts() -> list[Path]:
    """What somebody wrote: the bytes of a picture spell anything."""
    return [path for path in tracked() if path.suffix != ".png"]


def test_no_file_names_a_place_of_one_machine():
    """Ours: what is written here must be true anywhere."""
    assert [name(path) for path in texts() if PLACES.search(path.read_bytes())] == []


def test_no_file_puts_work_off():
    """STYLE 4: what is not done is an issue, not a comment."""
    assert [name(path) for path in texts() if LATER.search(path.read_bytes())] == []
