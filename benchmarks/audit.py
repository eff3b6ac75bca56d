"""``python -m benchmarks.audit``: what the chain costs a record, before and after in one run.

Exit code 1 when it is more than the bar. Rounds take turns, and the quietest of each counts: what else a machine does
only ever adds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from functools import partial
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from a2mcp.audit import chain
from a2mcp.audit.chain import START
from a2mcp.audit.journal import Journal
from a2mcp.audit.record import done_line, start_line, summarise
from a2mcp.clock import SystemClock, iso
from a2mcp.types import new_call_id
from benchmarks.report import machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Work = Callable[[], object]
    Figures = dict[str, float]

BAR_US: Final = 3.0
ROUNDS: Final = 40
RECORDS: Final = 2048
GROUPS: Final = (1, 16, 256)
BARE: Final = "bare"
CHAINED: Final = "chained"
LIMIT: Final = 16 << 20
"""Few rotations: they cost both the same."""


class Bare(Journal):
    """The journal as it would be without a chain."""

    def _chained(self, lines: Sequence[bytes]) -> list[bytes]:
        return list(lines)

    def _took(self, lines: Sequence[bytes]) -> None:  # noqa: ARG002  # There is nothing to keep of them.
        self._last, self._opened = START, False


@click.command()
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the page here, too.")
def main(*, out: Path | None) -> None:
    """Measure and print a page."""
    with tempfile.TemporaryDirectory(prefix="a2mcp-benchmark-") as folder:
        figures = measure(Path(folder))
    page = _page(figures)
    click.echo(page)
    if out is not None:
        out.write_text(page, encoding="utf-8")
    sys.exit(int(_cost(figures) > BAR_US))


def measure(folder: Path) -> Figures:
    """µs a record of each kind of work, in its quietest round."""
    work = {**_encoding(), **_chaining(), **_appending(folder)}
    best = dict.fromkeys(work, float("inf"))
    for _ in range(ROUNDS):
        for name, action in work.items():
            began = time.perf_counter()
            action()
            best[name] = min(best[name], (time.perf_counter() - began) / RECORDS * 1e6)
    return best


def _records() -> list[bytes]:
    args = summarise(b'{"command":"uname -s; pwd","cwd":"/home/somebody/project"}')
    sid, made = new_call_id(), []
    for _ in range(RECORDS // 2):
        call, now = new_call_id(), iso(SystemClock().now())
        made.append(start_line(now, call, sid, "bash", args))  # type: ignore[arg-type]  # Both are UUIDs.
        made.append(done_line(now, call, sid, "bash", args, is_error=False))  # type: ignore[arg-type]
    return made


def _encoding() -> dict[str, Work]:
    return {"encoding": _records}


def _chaining() -> dict[str, Work]:
    lines = _records()
    return {
        "chaining, BLAKE2b-160": lambda: chain.join(lines, START),
        "with a new state each time": lambda: _join(lines, lambda data: blake2b(data, digest_size=20)),
        "with BLAKE2b-128": lambda: _join(lines, lambda data: blake2b(data, digest_size=16)),
        "with SHA-256": lambda: _join(lines, sha256),
    }


def _join(lines: Sequence[bytes], digest: Callable[[bytes], Any]) -> None:
    """As ``chain.join``, with another hash."""
    seq, last, joined = START.seq, START.hash, []
    for line in lines:
        seq += 1
        body = b'%b,"seq":%d' % (line[:-2], seq)
        last = digest(last + body).hexdigest().encode()
        joined.append(b'%b,"hash":"%b"}\n' % (body, last))


def _appending(folder: Path) -> dict[str, Work]:
    lines, work = _records(), {}
    for size in GROUPS:
        groups = [lines[at : at + size] for at in range(0, len(lines), size)]
        for name, kind in ((BARE, Bare), (CHAINED, Journal)):
            journal = kind(folder / f"{name}-{size}.log", clock=SystemClock(), limit=LIMIT)
            work[_appended(size, name)] = partial(_append, journal, groups)
    return work


def _append(journal: Journal, groups: Sequence[Sequence[bytes]]) -> None:
    for group in groups:
        journal.append(group)


def _appended(size: int, name: str) -> str:
    return f"groups of {size}, {name}"


def _cost(figures: Figures) -> float:
    """What the chain costs a record, at the size of groups where it costs most."""
    return max(figures[_appended(size, CHAINED)] - figures[_appended(size, BARE)] for size in GROUPS)


def _page(figures: Figures) -> str:
    rows = [f"| {name} | {figures[name]:.2f} |" for name in figures if not name.startswith("groups")]
    groups = []
    for size in GROUPS:
        bare, chained = figures[_appended(size, BARE)], figures[_appended(size, CHAINED)]
        groups.append(f"| {size} | {bare:.2f} | {chained:.2f} | {chained - bare:.2f} |")
    how = (
        f"{machine()}. Written by `python -m benchmarks.audit`: µs a record, the quietest of {ROUNDS} rounds of "
        f"{RECORDS} records, before and after in one run."
    )
    verdict = "pass" if _cost(figures) <= BAR_US else "FAIL"
    head = ("# What the chain costs a record", "", how, "", "| work | µs |", "| --- | ---: |")
    middle = ("", "Writing, with one `write(2)` a group:", "", "| records a group | without | with | cost |")
    foot = ("", f"The bar is {BAR_US:g} µs: {verdict}.", "")
    return "\n".join((*head, *rows, *middle, "| ---: | ---: | ---: | ---: |", *groups, *foot))


if __name__ == "__main__":
    main()
