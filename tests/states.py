"""State machines: steps in any order against a model; a few seconds in the whole suite, longer with ``A2MCP_TEST_LONG=1``.

All steps of a machine are drawn by one rule. Hypothesis switches a random part of the rules off in each run, which is good
for finding what needs many of one kind, and misses most of what needs three kinds in a row, as faults here do.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

if TYPE_CHECKING:
    from collections.abc import Callable

LONG: Final = bool(os.environ.get("A2MCP_TEST_LONG"))


class Machine(RuleBasedStateMachine):
    """A machine whose steps are the methods under ``@step``."""

    @rule(data=st.data())
    def goes_on(self, data: st.DataObject) -> None:
        """Take one step."""
        name = data.draw(_names(type(self)), label="step")
        method = getattr(self, name)
        drawn: dict[str, Any] = {}
        for key, strategy in method.drawn.items():
            found = strategy(self) if callable(strategy) else strategy
            if found is None:
                return  # There is nothing yet to take this step with.
            drawn[key] = data.draw(found, label=key)
        made = method(**drawn)
        if made is not None:
            getattr(self, method.into).append(made)


@cache
def _names(machine: type[Machine]) -> st.SearchStrategy[str]:
    """The names of its steps, each as often as it is to be taken beside the others."""
    steps = [method for method in (getattr(machine, name) for name in dir(machine)) if hasattr(method, "drawn")]
    return st.sampled_from([method.__name__ for method in steps for _ in range(method.weight)])


def step(
    *, into: str | None = None, weight: int = 1, **drawn: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a method a step.

    Args:
        into: the attribute, a list, that what it returns is added to.
        weight: how often it is taken, beside the others.
        drawn: a strategy for each argument, or what makes one of the machine, such as ``among``.
    """

    def mark(method: Callable[..., Any]) -> Callable[..., Any]:
        method.drawn, method.into, method.weight = drawn, into, weight  # type: ignore[attr-defined]
        return method

    return mark


def among(name: str) -> Callable[[Any], st.SearchStrategy[Any] | None]:
    """Draw one of what is in a list of the machine."""
    return lambda machine: st.sampled_from(found) if (found := getattr(machine, name)) else None


def some_of(name: str) -> Callable[[Any], st.SearchStrategy[list[Any]]]:
    """Draw a few of what is in a list of the machine."""
    return lambda machine: (
        st.lists(st.sampled_from(found), max_size=4) if (found := getattr(machine, name)) else st.just([])
    )


def seldom() -> st.SearchStrategy[bool]:
    """Draw whether to do what ends most of the others' chances."""
    return st.sampled_from([False] * 7 + [True])


def explore(machine: type[Machine], *, sequences: int = 100, steps: int = 40) -> None:
    """Run a machine through sequences of steps; fails with one in which it differs from its model.

    The long form looks for the shortest one, which can take minutes.
    """
    chosen = settings(
        phases=[Phase.generate, Phase.shrink] if LONG else [Phase.generate],
        max_examples=sequences * 10 if LONG else sequences,
        stateful_step_count=steps * 2 if LONG else steps,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    run_state_machine_as_test(machine, settings=chosen)
