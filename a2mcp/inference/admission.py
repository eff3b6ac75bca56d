"""Whether a model may be asked: which one, whether it can be, and whether the budget allows it.

Owns the order of these questions. Asks each anew every time, so that a switch or a spent budget stops a turn that is
under way. Imports nothing of the extra: a refusal costs microseconds.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.errors import CannotInfer, InferenceDenied, MissingExtra
from a2mcp.inference.ledger import Ledger
from a2mcp.inference.registry import Registry
from a2mcp.inference.rows import DENY
from a2mcp.inference.tripwire import SENTINEL

if TYPE_CHECKING:
    from a2mcp.inference.rows import ModelRow

LIBRARY: Final = "pydantic_ai"


def installed() -> bool:
    """Whether the extra is there."""
    return find_spec(LIBRARY) is not None


def can_be_asked(registry: Registry) -> bool:
    """Whether there is a model that can be asked, now or once that is allowed again."""
    row = registry.chosen()
    return row is not None and row.usable and installed()


class Admission(msgspec.Struct, frozen=True):
    """The questions before each request."""

    registry: Registry
    ledger: Ledger

    def check(self, model: str | None) -> ModelRow:
        """Answer with the row of a model, or of the chosen one.

        Raises:
            InferenceDenied, BudgetSpent, CannotInfer: it may not or cannot be asked.
        """
        row = self._row(model)
        if row.api == DENY:
            self.registry.speak(row)  # Refuses, and counts that it did.
        self._rest()
        return row

    def look(self) -> None:
        """Say whether the chosen model could be asked, without being counted as an attempt.

        Raises:
            InferenceDenied, BudgetSpent, CannotInfer: it could not.
        """
        if self.denied():
            raise InferenceDenied(SENTINEL)
        self._row(None)
        self._rest()

    def denied(self) -> bool:
        """Whether this host may ask no model now."""
        row = self.registry.chosen()
        return row is not None and row.api == DENY

    def _row(self, model: str | None) -> ModelRow:
        row = self.registry.chosen() if model is None else self.registry.find(model)
        if row is None:
            raise CannotInfer(
                "No model is chosen." if model is None else f"There is no model '{model[:80]}'.",
                hint="The operator's file models.yml names them.",
            )
        return row

    def _rest(self) -> None:
        self.ledger.check()
        if not installed():
            raise MissingExtra(f"{LIBRARY} is not installed")
