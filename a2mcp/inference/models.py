"""Everything about models that one daemon has, for whoever works with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from a2mcp.inference.overrides import Overrides
from a2mcp.inference.registry import Registry
from a2mcp.inference.stock import Stock

if TYPE_CHECKING:
    from a2mcp.clock import Clock
    from a2mcp.inference.stock import CatalogueFile


class Models(msgspec.Struct, frozen=True):
    """The parts, which belong together."""

    registry: Registry
    stock: Stock
    overrides: Overrides

    @classmethod
    def of(cls, file: CatalogueFile, clock: Clock) -> Self:
        """Make them; nothing is in the registry before the stock is refreshed."""
        registry = Registry(clock)
        return cls(registry, Stock(registry, file), Overrides())
