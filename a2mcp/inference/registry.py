"""The registry of models: who offers which, and which of them is chosen.

Everything belongs to a source, and a source gives up all that it has at once. A provider that two sources offer is the
later one's for as long as that has it; then it is the earlier one's again, as it was. (The seed's host forgets who was
there first; nothing here does.)

All that is held is one immutable value, so readers need no lock and see no half of a change.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.errors import CannotInfer
from a2mcp.inference.apis import BUILTIN, Api
from a2mcp.inference.keys import Keys
from a2mcp.inference.rows import ModelRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2mcp.clock import Clock

BUILTIN_SOURCE: Final = "a2mcp-builtin"
MAIN: Final = "main"
"""The slot of the model that the host's own agent works with."""


class Offer(msgspec.Struct, frozen=True):
    """What one source has."""

    rows: tuple[ModelRow, ...] = ()
    apis: tuple[Api, ...] = ()
    over_all: bool = False
    """Whether it comes before every other, later ones included."""


class Holdings(msgspec.Struct, frozen=True):
    """All that a registry holds."""

    offers: dict[str, Offer]
    """By source, in the order in which they came."""
    slots: dict[str, str]
    """The chosen models, by slot, as ``provider/id``."""

    def without(self, source: str) -> Holdings:
        """The same as if this source had never come."""
        return Holdings({name: offer for name, offer in self.offers.items() if name != source}, self.slots)

    def rows(self) -> dict[str, ModelRow]:
        """The rows that are to be seen, by their name: of a provider, those of its last source."""
        ranked = self._ranked()
        owners = {row.provider: offer for offer in ranked for row in offer.rows}
        return {row.ref: row for offer in ranked for row in offer.rows if owners[row.provider] is offer}

    def apis(self) -> dict[str, Api]:
        """The wire formats, by name."""
        return {api.name: api for offer in self._ranked() for api in offer.apis}

    def _ranked(self) -> list[Offer]:
        """The offers, the one that wins last."""
        return sorted(self.offers.values(), key=lambda offer: offer.over_all)


class _Seen(msgspec.Struct, frozen=True):
    """What readers look things up in."""

    holdings: Holdings
    rows: Mapping[str, ModelRow]
    apis: Mapping[str, Api]


def _seen(holdings: Holdings) -> _Seen:
    return _Seen(holdings, holdings.rows(), holdings.apis())


class Registry:
    """Every model that is known, and the chosen ones."""

    def __init__(self, clock: Clock) -> None:
        self._keys = Keys(clock)
        self._writing = threading.Lock()
        self._now = _seen(Holdings({BUILTIN_SOURCE: Offer(apis=BUILTIN)}, {}))

    # --- looking things up --------------------------------------------------------------------------------------------

    @property
    def holdings(self) -> Holdings:
        """All that it holds now."""
        return self._now.holdings

    def rows(self) -> tuple[ModelRow, ...]:
        """Every model."""
        return tuple(self._now.rows.values())

    def apis(self) -> Mapping[str, Api]:
        """Every wire format, by name."""
        return self._now.apis

    def find(self, ref: str) -> ModelRow | None:
        """The model with this name (``provider/id``)."""
        return self._now.rows.get(ref)

    def chosen(self, slot: str = MAIN) -> ModelRow | None:
        """The chosen model of a slot; None where none was chosen, or where it is gone."""
        now = self._now
        return now.rows.get(now.holdings.slots.get(slot, ""))

    def speak(self, row: ModelRow) -> Any:
        """Make what asks this model, for one request. May wait for a program that prints a key: see ``row.waits``.

        Raises:
            InferenceDenied: this host may ask no model now.
            CannotInfer: there is no key, or nobody speaks the format.
        """
        api = self._now.apis.get(row.api)
        if api is None:
            raise CannotInfer(f"Nobody speaks '{row.api}', the API of the model {row.ref}.")
        if row.transport is not None and not api.bypasses:
            raise CannotInfer(f"Nobody speaks '{row.transport}', the transport of the model {row.ref}.")
        return api.make(row, self._keys.of(row))

    # --- changing -----------------------------------------------------------------------------------------------------

    def claim(self, source: str, offer: Offer | None) -> Offer | None:
        """Have a source offer exactly this, or nothing any more; what it offered before."""
        with self._writing:
            held = self.holdings
            rest = held.without(source) if offer is None else Holdings({**held.offers, source: offer}, held.slots)
            self._now = _seen(rest)
        self._keys.forget()
        return held.offers.get(source)

    def choose(self, ref: str | None, slot: str = MAIN) -> str | None:
        """Choose the model of a slot by its name, or none; the one before."""
        with self._writing:
            held = self.holdings
            slots = {name: chosen for name, chosen in held.slots.items() if name != slot}
            self._now = _seen(Holdings(held.offers, slots if ref is None else {**slots, slot: ref}))
            return held.slots.get(slot)
