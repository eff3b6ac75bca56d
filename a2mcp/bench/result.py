"""The result of a run as one frozen value: what ``--json`` prints and what every drawing is made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.bench.histogram import Bar, Histogram

if TYPE_CHECKING:
    from a2mcp.bench.load import Tally
    from a2mcp.bench.plan import Plan

_SATURATED: Final = 0.85
"""Share of a core above which the client, not the server, may be what is measured."""


class Latency(msgspec.Struct, frozen=True):
    """Latencies in microseconds, from the first byte sent to the last byte of the reply."""

    min: int
    mean: float
    p50: int
    p90: int
    p99: int
    p999: int
    max: int


class StepResult(msgspec.Struct, frozen=True):
    """One step of the mix."""

    label: str
    calls: int
    latency_us: Latency


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured. ``calls`` are good replies; failed ones are in ``errors``, by kind."""

    url: str
    era: str
    session: bool
    clients: int
    seconds: float
    calls: int
    calls_per_second: float
    failed: int
    errors: dict[str, int]
    unfinished: int
    gave_up: bool
    latency_us: Latency
    steps: tuple[StepResult, ...]
    client_cpu_share: float
    client_is_limit: bool
    histogram: tuple[Bar, ...]


def summarize(plan: Plan, labels: list[str], tally: Tally, *, session: bool) -> Result:
    """Make the result of a tally. ``labels`` name the steps, in the order of the tally."""
    whole = Histogram()
    for each in tally.by_step:
        whole.add(each)
    rate = tally.in_window / tally.seconds if tally.seconds > 0 else 0.0
    steps = zip(labels, tally.by_step, strict=True)
    return Result(
        url=plan.address.url,
        era=str(plan.era),
        session=session,
        clients=plan.clients,
        seconds=round(tally.seconds, 3),
        calls=whole.count,
        calls_per_second=round(rate, 1),
        failed=tally.failed,
        errors=dict(sorted(tally.errors.items(), key=lambda item: -item[1])),
        unfinished=tally.unfinished,
        gave_up=tally.gave_up,
        latency_us=_latency(whole),
        steps=tuple(StepResult(label, each.count, _latency(each)) for label, each in steps),
        client_cpu_share=round(tally.cpu_share, 3),
        client_is_limit=tally.cpu_share > _SATURATED,
        histogram=tuple(whole.bars()),
    )


def _latency(histogram: Histogram) -> Latency:
    p50, p90, p99, p999 = (histogram.percentile(share) for share in (0.5, 0.9, 0.99, 0.999))
    return Latency(histogram.shortest, round(histogram.mean, 1), p50, p90, p99, p999, histogram.longest)
