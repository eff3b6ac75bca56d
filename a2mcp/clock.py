"""The time seam: everything that reads a clock takes a ``Clock``, so that tests can turn it.

Durations and deadlines use ``monotonic`` (a jump of the wall clock never ends or prolongs anything); only what a
person reads uses ``now``.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one to measure with and one to print."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; never goes back."""
        ...

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; never goes back."""
        return time.monotonic()

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """Write a UTC moment as ``2026-10-16T04:35:23.000Z``, the form of every timestamp we emit."""
    # PERF: a third of the time of ``strftime``, and it stands in every group of audit records.
    return moment.isoformat(timespec="milliseconds")[:23] + "Z"
