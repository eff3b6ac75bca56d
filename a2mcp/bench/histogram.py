"""Latencies in bounded memory: counts in buckets whose width grows with the value.

Owns the bucket arithmetic and the percentiles. A value below 128 µs has a bucket of its own; above that each power of
two is cut into 64 buckets, so a percentile is never off by more than 1/64 (1.6 %). Knows nothing of what is measured.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

_SUB_BITS: Final = 6
_SUB: Final = 1 << _SUB_BITS
_TOP: Final = (1 << 40) - 1
"""The longest value that is told apart, in microseconds (twelve days)."""


class Bar(msgspec.Struct, frozen=True):
    """One bar of a drawing: values from ``low`` (inclusive) to ``high`` (exclusive), in microseconds."""

    low: int
    high: int
    count: int


def bucket_of(value: int) -> int:
    """The index of the bucket that holds ``value``; monotonic, and without gaps."""
    shift = value.bit_length() - _SUB_BITS - 1
    return value if shift <= 0 else (shift << _SUB_BITS) + (value >> shift)


def bounds_of(index: int) -> tuple[int, int]:
    """The lowest value of a bucket, and the lowest of the next one."""
    shift = max(0, (index >> _SUB_BITS) - 1)
    low = (index - (shift << _SUB_BITS)) << shift
    return low, low + (1 << shift)


class Histogram:
    """A count of latencies, with the exact smallest, largest and sum beside the buckets."""

    __slots__ = ("_counts", "count", "longest", "shortest", "total")

    def __init__(self) -> None:
        self._counts = [0] * (bucket_of(_TOP) + 1)
        self.count = 0
        self.total = 0
        self.shortest = 0
        self.longest = 0

    def record(self, value: int) -> None:
        """Count one latency in microseconds; what lies outside the range is counted at its edge."""
        # PERF: runs once per reply: bucket_of(), min() and max() are written out.
        if not 0 <= value <= _TOP:
            value = 0 if value < 0 else _TOP
        shift = value.bit_length() - 7
        self._counts[value if shift <= 0 else (shift << 6) + (value >> shift)] += 1
        if not self.count or value < self.shortest:
            self.shortest = value
        if value > self.longest:  # noqa: PLR1730 - see above
            self.longest = value
        self.count += 1
        self.total += value

    def add(self, other: Histogram) -> None:
        """Take over all counts of another histogram."""
        if not other.count:
            return
        self._counts = [mine + theirs for mine, theirs in zip(self._counts, other._counts, strict=True)]
        self.shortest = min(self.shortest, other.shortest) if self.count else other.shortest
        self.longest = max(self.longest, other.longest)
        self.count += other.count
        self.total += other.total

    def percentile(self, share: float) -> int:
        """The latency that ``share`` (0 to 1) of all calls did not exceed, in microseconds; 0 when there are none.

        The upper end of the bucket is given, never more than the largest value seen.
        """
        wanted = max(1, math.ceil(share * self.count))
        seen = 0
        for index, count in enumerate(self._counts):
            seen += count
            if seen >= wanted:
                return min(max(bounds_of(index)[1] - 1, self.shortest), self.longest)
        return self.longest

    @property
    def mean(self) -> float:
        """The average, in microseconds."""
        return self.total / self.count if self.count else 0.0

    def bars(self, per_octave: int = 4) -> list[Bar]:
        """The distribution for drawing: ``per_octave`` bars for every doubling, from the shortest to the longest.

        Args:
            per_octave: a power of two, at most 64.
        """
        joined: dict[int, int] = {}
        step = _SUB // per_octave
        for index, count in enumerate(self._counts):
            if count:
                joined[index // step] = joined.get(index // step, 0) + count
        if not joined:
            return []
        span = range(min(joined), max(joined) + 1)
        return [Bar(bounds_of(key * step)[0], bounds_of((key + 1) * step)[0], joined.get(key, 0)) for key in span]
