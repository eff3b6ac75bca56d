"""What a run must come out with: the bars, as ratios of figures of the same run where that is possible."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

import msgspec

from benchmarks.catalog import HELLO, OURS

if TYPE_CHECKING:
    from benchmarks.rounds import Findings


_TIMES: Final = "\N{MULTIPLICATION SIGN}"


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One bar and how far it was met. ``value`` is ``None`` where it was not measured."""

    what: str
    value: float | None
    bar: float
    stretch: float
    unit: str
    at_least: bool
    """True where more is better."""

    @property
    def verdict(self) -> str:
        """``stretch``, ``pass``, ``FAIL`` or ``not measured``."""
        if self.value is None:
            return "not measured"
        sign = 1 if self.at_least else -1
        if sign * self.value >= sign * self.stretch:
            return "stretch"
        return "pass" if sign * self.value >= sign * self.bar else "FAIL"


class Medians:
    """The medians of a run, over its rounds."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def figure(self, server: str, operation: str, clients: int, field: str = "calls_per_second") -> float | None:
        """A field of the samples of one measurement."""
        wanted = (server, operation, clients)
        return _median(
            [
                float(getattr(figure.sample, field))
                for figure in self._findings.figures
                if (figure.server, figure.operation, figure.clients) == wanted
            ]
        )

    def gauge(self, server: str, name: str) -> float | None:
        """A memory size or a duration."""
        return _median([g.value for g in self._findings.gauges if (g.server, g.name) == (server, name)])


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def _over(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def judge(medians: Medians) -> list[Bar]:
    """Hold a run against all bars."""
    return [*_against_peers(medians), *_beside_crowds(medians), *_absolute(medians)]


def _against_peers(medians: Medians) -> list[Bar]:
    rows = [
        ("mcp (PyPI)", 16, 3.0, 5.0),
        ("fastmcp", 16, 6.0, 10.0),
        ("TypeScript SDK", 16, 2.0, 3.5),
        (HELLO, 16, 0.8, 1.2),
        ("mcp (PyPI)", 64, 3.0, 6.0),
    ]
    return [
        Bar(
            what=f"echo, {clients} clients, over {peer}",
            value=_over(medians.figure(OURS, "echo", clients), medians.figure(peer, "echo", clients)),
            bar=bar,
            stretch=stretch,
            unit=_TIMES,
            at_least=True,
        )
        for peer, clients, bar, stretch in rows
    ]


def _beside_crowds(medians: Medians) -> list[Bar]:
    alone = medians.figure(OURS, "echo alone", 16)
    rows = [
        ("1,000 hanging calls", "echo beside hanging", 0.7, 0.9),
        ("900 idle connections", "echo beside idle", 0.7, 0.9),
        ("20 pages and 20 terminals that watch", "echo beside watching", 0.9, 1.0),
    ]
    return [
        Bar(
            what=f"echo, 16 clients, beside {crowd}, over alone",
            value=_over(medians.figure(OURS, operation, 16), alone),
            bar=bar,
            stretch=stretch,
            unit=_TIMES,
            at_least=True,
        )
        for crowd, operation, bar, stretch in rows
    ]


def _absolute(medians: Medians) -> list[Bar]:
    tail = _over(medians.figure(OURS, "echo", 64, "p99"), medians.figure(OURS, "echo", 64, "p50"))
    bash, bare = medians.figure(OURS, "bash true", 1, "p50"), medians.gauge(OURS, "bare bash ms")
    added = None if bash is None or bare is None else bash / 1000 - bare
    rows = [
        ("echo, 64 clients, p99 over p50", tail, 4.0, 2.5, _TIMES),
        ("memory, idle", medians.gauge(OURS, "memory idle MB"), 45.0, 33.0, " MB"),
        ("memory with 1,000 hanging calls", medians.gauge(OURS, "memory hanging MB"), 65.0, 40.0, " MB"),
        ("start to accepting connections", medians.gauge(OURS, "startup ms"), 300.0, 150.0, " ms"),
        ("bash true, 1 client, over bare subprocess.run", added, 0.8, 0.3, " ms"),
    ]
    return [
        Bar(what=what, value=value, bar=bar, stretch=stretch, unit=unit, at_least=False)
        for what, value, bar, stretch, unit in rows
    ]
