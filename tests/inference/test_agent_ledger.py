"""What models cost: sums, days, and the budget that refuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from a2mcp.errors import BudgetSpent
from a2mcp.inference.ledger import Budget, Ledger, Spent


class Clock:
    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return 0.0


def test_what_is_spent_is_summed_for_today_and_in_all() -> None:
    """Source: issue, point 6."""
    clock = Clock()
    ledger = Ledger(clock, Budget())
    ledger.count(Spent(requests=1, input_tokens=10))
    clock.moment += timedelta(minutes=2)
    ledger.count(Spent(requests=2, output_tokens=5))

    assert ledger.today == Spent(requests=2, output_tokens=5)
    assert ledger.total == Spent(requests=3, input_tokens=10, output_tokens=5)


@pytest.mark.parametrize(
    ("budget", "setting"),
    [(Budget(tokens=100), "agent.budget_tokens"), (Budget(requests=2), "agent.budget_requests")],
)
def test_a_spent_budget_refuses_and_names_its_setting(budget: Budget, setting: str) -> None:
    """Source: issue, point 6: refuses with a clear error."""
    ledger = Ledger(Clock(), budget)
    ledger.count(Spent(requests=1, input_tokens=60, output_tokens=30))
    ledger.check()
    ledger.count(Spent(requests=1, output_tokens=10))

    with pytest.raises(BudgetSpent, match=setting):
        ledger.check()


def test_the_next_day_has_its_own_budget() -> None:
    """Ours: the day is that of UTC."""
    clock = Clock()
    ledger = Ledger(clock, Budget(requests=0))
    with pytest.raises(BudgetSpent):
        ledger.check()
    ledger = Ledger(clock, Budget(requests=1))
    ledger.count(Spent(requests=1))
    clock.moment += timedelta(minutes=2)

    ledger.check()


def test_what_another_daemon_spent_counts_on_its_own_day_only() -> None:
    """Ours: a restart is no new budget, and neither is yesterday's a debt."""
    ledger = Ledger(Clock(), Budget(requests=5))
    ledger.restore("2026-11-29", Spent(requests=5))
    ledger.check()
    ledger.restore("2026-11-30", Spent(requests=5))

    with pytest.raises(BudgetSpent):
        ledger.check()
    assert ledger.total == Spent()
