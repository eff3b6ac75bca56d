"""What models have cost: requests and tokens, since the start and today, and the point at which no more are made.

Owns the sums and the budget. Does not keep them: ``transcripts`` has what was spent today, also by a daemon before this
one. The day is that of UTC, so that a change of the clock's zone gives nobody a second budget.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from a2mcp.errors import BudgetSpent

if TYPE_CHECKING:
    from a2mcp.clock import Clock


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent."""

    requests: int = 0
    """Those that failed included."""
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Both kinds together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What may be spent in a day; None is no limit."""

    tokens: int | None = None
    requests: int | None = None


class Ledger:
    """The sums. May be used from any thread."""

    def __init__(self, clock: Clock, budget: Budget) -> None:
        self._clock = clock
        self._budget = budget
        self._writing = threading.Lock()
        self._day = ""
        self.today = Spent()
        self.total = Spent()
        """Since the daemon started."""

    def day(self) -> str:
        """The day that is counted now, as ``2026-11-30``."""
        return self._clock.now().date().isoformat()

    def restore(self, day: str, spent: Spent) -> None:
        """Add what a daemon before this one has spent on a day; of another day than today it is nothing."""
        with self._writing:
            self._turn_page()
            if day == self._day:
                self.today += spent

    def count(self, spent: Spent) -> None:
        """Add what has just been spent."""
        with self._writing:
            self._turn_page()
            self.today += spent
            self.total += spent

    def check(self) -> None:
        """Refuse to spend more than there is.

        Raises:
            BudgetSpent: as much as the budget has was spent today.
        """
        with self._writing:
            self._turn_page()
            today = self.today
        if self._budget.tokens is not None and today.tokens >= self._budget.tokens:
            raise BudgetSpent(f"{today.tokens:,} of {self._budget.tokens:,} tokens", "agent.budget_tokens")
        if self._budget.requests is not None and today.requests >= self._budget.requests:
            raise BudgetSpent(f"{today.requests:,} of {self._budget.requests:,} requests", "agent.budget_requests")

    def _turn_page(self) -> None:
        day = self.day()
        if day != self._day:
            self._day, self.today = day, Spent()
