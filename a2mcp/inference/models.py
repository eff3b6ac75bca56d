"""Everything about models that one daemon has, for whoever works with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from a2mcp.inference.loader import Loader
from a2mcp.inference.overrides import Overrides
from a2mcp.inference.registry import Registry
from a2mcp.inference.switch import Refusals, Switch

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.clock import Clock
    from a2mcp.inference.loader import CatalogueFile
    from a2mcp.inference.takeover import Takeover


class Models(msgspec.Struct, frozen=True):
    """The parts, which belong together."""

    registry: Registry
    loader: Loader
    overrides: Overrides
    switch: Switch

    @classmethod
    def of(cls, file: CatalogueFile, clock: Clock, warn: Callable[[str], object]) -> Self:
        """Make them; nothing is in the registry before the loader is refreshed."""
        registry, overrides, refusals = Registry(clock), Overrides(), Refusals()
        loader = Loader(registry, file)

        def takeover() -> Takeover:
            from a2mcp.inference.takeover import Takeover  # noqa: PLC0415 - most daemons never deny anything

            return Takeover(registry, overrides, refusals.add)

        return cls(registry, loader, overrides, Switch(takeover, loader, refusals, warn))
