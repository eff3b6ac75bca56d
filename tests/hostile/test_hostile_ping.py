"""P4: one client cannot deny another a ping within a second, whatever it does."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any

import attacks
import ping
import pytest
from harness import Daemon, running
from inflight import WITH_TOOLS
from warming import warmed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BOUND_S = 1.0
P99_S = 0.1
BEFORE_S = 0.2
DURING_S = 10.0 if os.environ.get("A2MCP_TEST_LONG") == "1" else 1.2
PINGS = 200
NOISE = 5
"""Others use the machine, too: p99 may be this many times what a ping takes without an attack, or what a pause between
two is too long. The bound has no such excuse."""
QUIET, STARVED, AGAIN = 0.1, 0.4, 5
"""Where others had the loop's processor for more than the first share of the time, what came out bad is measured again,
and so many times at most; beyond the second share it says nothing."""

ATTACKS = {
    "come_and_reset": "Z05", "come_and_go": "Z05", "sit_there": "Z05", "talk_rubbish": "H12", "guess_tokens": "A09", "ask_openly": "A01",
    "drip_heads": "H09", "drip_bodies": "H09", "never_read": "X04", "promise_much": "H08",
    "pipeline": "H06", "write_heads": "H04", "cut_small": "H03", "post_large": "J10", "post_dense": "J10", "open_sessions": "S03",
    "list_tools": "H06", "listen": "U12", "hang": "Z04", "work": "Z04",
    "many_ranges": "X11", "find_properties": "X12", "list_folders": "X13", "upload_halves": "X10",
}  # fmt: skip
"""What is tried, and the row that it belongs to. That no lock is held for long (Z09) would show in each."""


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the attacks use."""
    made = tmp_path_factory.mktemp("ground")
    ping.prepare(made)
    return made


@pytest.fixture(scope="module")
def spare_mb() -> float:
    """Threads for files and tools, what these load, and a heap that was large once. ``tests/soak`` shows that it stays so."""
    return 30.0


@pytest.fixture
def warm(tmp_path: Path, ground: Path) -> Iterator[Daemon]:
    """A daemon for one attack, with a share."""
    with running(tmp_path / "home", argv=WITH_TOOLS) as daemon:
        shared = daemon.session().call("xfer_share", path=str(ground / "share"))
        assert shared.result["isError"] is False, shared.text
        yield warmed(daemon)


def test_every_attack_is_tried() -> None:
    """Ours: none of ``attacks.py`` is forgotten."""
    loops = {name for name, value in vars(attacks).items() if inspect.isgeneratorfunction(value) and value.__doc__}
    parts = {name for name in loops if inspect.signature(vars(attacks)[name]).parameters}
    assert loops - parts | {"promise_much"} == set(ATTACKS)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda name: f"{ATTACKS[name]} {name}")
def test_pings_are_answered_in_time_during(warm: Daemon, ground: Path, attack: str, record_property: Any) -> None:
    """P4, rows H, J, S, X and Z: p99 under 100 ms, and never a second."""
    before = ping.feel(warm, BEFORE_S)
    with ping.attacked(warm, attack, ground):
        for _ in range(AGAIN):
            during = ping.feel(warm, DURING_S, PINGS)
            if during.starved < QUIET or _is_in_time(before, during):
                break
    record_property("before", str(before))
    record_property("during", str(during))
    print(f"{attack}: {during}; before: {before}")  # noqa: T201  # ``pytest -rP`` shows it.

    if during.starved > STARVED:
        pytest.skip("somebody else has the processor: what is measured is not the daemon")
    assert _is_in_time(before, during), f"{during}; before: {before}"


def _is_in_time(before: ping.Pulse, during: ping.Pulse) -> bool:
    return during.worst < BOUND_S and during.p99 < max(P99_S, NOISE * before.p99, NOISE * during.noise)
