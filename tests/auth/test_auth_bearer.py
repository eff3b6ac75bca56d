"""The bearer token: read by the rule, compared in constant time on bytes, refusals told now and then."""

from __future__ import annotations

import ast
import hmac
import inspect
import random
import sys
import time
from operator import eq
from statistics import fmean, median, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

import a2mcp.auth
from a2mcp.auth import bearer
from a2mcp.auth.bearer import Bearer

TOKEN = "t" * 43
PAIRS, BATCH = 20_000, 200


def _bearer(reports: list[str] | None = None) -> Bearer:
    return Bearer(TOKEN, report=(reports if reports is not None else []).append)


@given(st.text(max_size=100))
def test_no_header_raises_and_none_but_the_token_is_let_in(value: str) -> None:
    """Section 0 row 17: compare_digest raises on a str that is not ASCII; ours never sees one."""
    checked = _bearer()

    assert checked.allows(value) is False
    assert checked.allows(f"Bearer {value}") is (value.strip(" \t") == TOKEN)


@pytest.mark.parametrize("value", [None, "", "Bearer", f"Bearer{TOKEN}", f"Bearer\u00a0{TOKEN}", f"Bearer\u2003{TOKEN}", f"B\u00e9arer {TOKEN}",
                                   f"Bearer {TOKEN}\n", f"\nBearer {TOKEN}", f"bea\u0280er {TOKEN}", "Bearer \udcff"])  # fmt: skip
def test_the_rule_is_ascii(value: str | None) -> None:
    """Row A02: a no-break space is no space, a look-alike is no letter."""
    assert _bearer().allows(value) is False


def test_the_first_refusal_and_every_fiftieth_after_it_are_told() -> None:
    """Seed, "Authentication": first one, then one every 50."""
    reports: list[str] = []
    checked = _bearer(reports)

    for _ in range(120):
        checked.allows("Bearer wrong")
        checked.allows(f"Bearer {TOKEN}")

    assert checked.refused == 120
    assert reports == [f"[a2mcp] {number} unauthorized attempt(s)" for number in (1, 51, 101)]


def test_no_report_holds_what_was_given() -> None:
    """Row A05."""
    reports: list[str] = []
    _bearer(reports).allows("Bearer SECRET")

    assert "SECRET" not in "".join(reports)


def test_a_new_token_ends_the_old_one_at_once() -> None:
    """Issue, operator: rotate; remembered verdicts are told apart by the generation."""
    checked = _bearer()
    before = checked.generation

    checked.replace("n" * 43)

    assert checked.generation > before
    assert checked.allows(f"Bearer {TOKEN}") is False
    assert checked.allows("Bearer " + "n" * 43) is True


def test_a_closed_stderr_is_no_reason_not_to_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """Ours, after row D10: started without a stderr, or its reader gone."""

    class Gone:
        def write(self, _text: str) -> None:
            raise BrokenPipeError

    for stderr in (None, Gone()):
        monkeypatch.setattr(sys, "stderr", stderr)
        assert Bearer(TOKEN).allows("Bearer wrong") is False


def test_the_only_comparison_with_the_token_is_compare_digest_on_bytes() -> None:
    """Row A06: read from the syntax tree: no ==, no in, no startswith with the secret; both sides are bytes."""
    tree = ast.parse(inspect.getsource(bearer))
    uses = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "_token" and isinstance(node.ctx, ast.Load)
    ]
    calls = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "compare_digest"
    ]  # fmt: skip
    compared = [name for node in ast.walk(tree) if isinstance(node, ast.Compare) for name in ast.walk(node)]

    assert len(uses) == len(calls) == 1
    assert uses[0] in calls[0].args
    assert uses[0] not in compared
    stored = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "self._token"
    ]
    assert stored
    assert {ast.unparse(value) for value in stored} == {"token.encode()"}


def test_what_is_compared_is_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row A06, at run time."""
    seen: list[tuple[object, object]] = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: (seen.append((a, b)), real(a, b))[1])

    for value in (None, "Bearer é", f"Bearer {TOKEN}", "Basic x"):
        _bearer().allows(value)

    assert len(seen) == 4, "a header that is no bearer is compared too"
    assert all(type(a) is type(b) is bytes for a, b in seen)
    assert a2mcp.auth.__doc__


def test_a_refusal_takes_as_long_whichever_byte_is_wrong() -> None:
    """Row A06: t under 4.5 over 20,000 pairs, wrong in the first byte and wrong in the last one.

    Something else on the machine can look like a difference for once, one way or the other; one that is there is there
    most of the times, and always the same way.
    """
    assert abs(median(_t_of_pairs(_bearer()) for _ in range(5))) < 4.5


def test_a_comparison_that_ends_at_the_first_wrong_byte_is_told_by_its_time() -> None:
    """Ours: the measure of the test before can fail."""
    assert abs(median(_t_of_pairs(Hasty()) for _ in range(5))) > 4.5


class Hasty:
    """Compares as nobody should."""

    def allows(self, value: str) -> bool:
        """Whether the token is right; sooner told when an early byte is wrong."""
        return all(map(eq, value[len("Bearer ") :], TOKEN))


def _t_of_pairs(checked: Bearer | Hasty) -> float:
    first, last = f"Bearer x{TOKEN[1:]}", f"Bearer {TOKEN[:-1]}x"
    differences: list[int] = []
    for _ in range(PAIRS // BATCH):
        turned = random.choices((False, True), k=BATCH)
        values = [value for turn in turned for value in ((last, first) if turn else (first, last))]
        # Made before any is timed, and of random places: a copy just made is read nanoseconds sooner or later for where
        # what it was copied from is, which alone came to a t of 7.
        took = [_ns(checked, value) for value in [value[:20] + value[20:] for value in values]]
        pairs = zip(turned, took[::2], took[1::2], strict=True)
        differences += (second - one if turn else one - second for turn, one, second in pairs)
    # The longest were interrupted, one way or the other.
    kept = sorted(differences)[PAIRS // 20 : -PAIRS // 20]
    return fmean(kept) / (stdev(kept) / len(kept) ** 0.5)


def _ns(checked: Bearer | Hasty, value: str) -> int:
    began = time.perf_counter_ns()
    checked.allows(value)
    return time.perf_counter_ns() - began
