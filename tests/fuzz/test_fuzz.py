"""Our own parsers against hostile bytes: kept inputs and mutations of them here, hours of them by ``make fuzz``."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import targets
from hypothesis import given, settings
from hypothesis import strategies as st

from a2mcp import masking
from a2mcp.auth import bearer, origin
from a2mcp.http import routes
from a2mcp.http.server import heads, parser
from a2mcp.xfer import ranges, target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EXAMPLES = 20_000 if os.environ.get("A2MCP_TEST_LONG") else 400
LARGEST_INPUT = 4096
LARGEST_CORPUS = 64 * 1024
ATHERIS = importlib.util.find_spec("atheris") is not None


@pytest.mark.parametrize("name", targets.NAMES)
def test_every_kept_input_is_handled(name: str) -> None:
    """Issue 5, item 4: what failed once never fails again."""
    check = targets.check(name)
    assert len(targets.kept(name)) > 5
    _check_all(check, name)


@pytest.mark.parametrize("name", targets.NAMES)
def test_the_corpus_stays_small(name: str) -> None:
    """Ours: it is there to be read."""
    sizes = [path.stat().st_size for path in targets.kept(name)]
    assert max(sizes) <= LARGEST_INPUT
    assert sum(sizes) <= LARGEST_CORPUS


def _check_all(check: Callable[[bytes], None], name: str) -> None:
    for path in targets.kept(name):
        check(path.read_bytes())


def _inputs(name: str) -> st.SearchStrategy[bytes]:
    """Kept inputs, cut, joined, and with some bytes changed; and bytes of no kind."""
    seeds = st.sampled_from([path.read_bytes() for path in targets.kept(name)])
    pieces = st.binary(max_size=4) | st.sampled_from(
        [b"\r\n", b" ", b"\0", b",", b":", b"/", b"%2e", b'"', b"=", b"0", b"\xff"]
    )

    def changed(drawn: tuple[bytes, bytes, int, int, bytes]) -> bytes:
        one, other, at, until, piece = drawn
        at %= len(one) + 1
        return one[:at] + piece + one[at + until :] + (other if until == 3 else b"")

    mutated = st.tuples(seeds, seeds, st.integers(0, LARGEST_INPUT), st.integers(0, 8), pieces).map(changed)
    return mutated | st.binary(max_size=200)


@pytest.mark.parametrize("name", targets.NAMES)
def test_inputs_like_them_are_handled(name: str) -> None:
    """Issue 5, item 4: a short run, with or without atheris."""
    check = targets.check(name)

    @settings(max_examples=EXAMPLES, database=None)
    @given(_inputs(name))
    def fuzz(data: bytes) -> None:
        check(data)

    fuzz()


def _plant_in_bearer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bearer, "_BEARER", bearer.re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr]\s+(.+)"))
    monkeypatch.setattr(bearer.hmac, "compare_digest", lambda given, token: given.strip() == token)


def _plant_in_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ranges._one
    monkeypatch.setattr(ranges, "_one", lambda text, size: real(text, size + 1))


def _plant_in_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_component", lambda piece: target.os.fsdecode(target.unquote_to_bytes(piece)))


def _plant_in_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes.Route, "matches", lambda self, path: path.startswith(self.path))


def _plant_in_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        origin, "_AUTHORITY", origin.re.compile(r"(?:.*@)?(\[[0-9A-Fa-f:.]+\]|[^:\[\]@/\\\s]+)(?::[0-9]*)?")
    )


def _plant_in_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "_check_lines", lambda _lines: None)


def _plant_in_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    real = parser.RequestParser._refuse
    monkeypatch.setattr(
        parser.RequestParser, "_refuse", lambda self, error: real(self, error) if self.content_length < 1000 else None
    )


def _plant_in_masking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_hint_in_bytes", masking.re.compile(rb"password|authorization").search)
    monkeypatch.setattr(masking, "_TOKENS", masking.re.compile(r"ghp_\w{16,}"))


PLANTED = [
    ("authorization", _plant_in_bearer),
    ("ranges", _plant_in_ranges),
    ("target", _plant_in_target),
    ("target", _plant_in_routes),
    ("names", _plant_in_names),
    ("headers", _plant_in_heads),
    ("request", _plant_in_parser),
    ("redactor", _plant_in_masking),
    ("secrets", _plant_in_masking),
]


@pytest.mark.parametrize(("name", "plant"), PLANTED)
def test_a_planted_fault_is_found(
    name: str, plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a check that cannot fail checks nothing; the kept inputs alone find these."""
    plant(monkeypatch)
    check = targets.check(name)
    with pytest.raises(Exception):  # noqa: B017, PT011  # A failed assertion, or whatever the fault raises.
        _check_all(check, name)


@pytest.mark.skipif(not ATHERIS, reason="atheris is not installed: pip install 'a2mcp[fuzz]'")
def test_the_long_form_runs(tmp_path: Path) -> None:
    """Issue 5, item 4: ``make fuzz`` says what it did."""
    argv = [sys.executable, targets.HERE / "run.py", "--seconds", "1", "--found", tmp_path, "authorization"]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    name, executions, _, coverage, *found = run.stdout.splitlines()[-1].split()
    assert (run.returncode, name, found) == (0, "authorization", ["nothing"]), run.stderr
    assert int(executions) > 1000
    assert int(coverage) > 5
