"""Keeps the registry in step with the operator's file, and its slot filled.

Owns which source is whose: the file's models and the placeholder have one each, and the takeover has its own, so that
none takes back what is another's. Nothing is ever written: what is chosen while the daemon runs is gone with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from a2mcp.inference.registry import MAIN, Offer
from a2mcp.inference.rows import PLACEHOLDER

if TYPE_CHECKING:
    from collections.abc import Collection

    from a2mcp.inference.registry import Registry
    from a2mcp.inference.rows import Catalogue

FILE_SOURCE: Final = "models.yml"
PLACEHOLDER_SOURCE: Final = "a2mcp-auto-model"


class CatalogueFile(Protocol):
    """The operator's file."""

    def read(self, apis: Collection[str]) -> Catalogue | None:
        """Read what it says; None when it is as it was at the last time."""
        ...


class Loader:
    """Fills a registry.

    Args:
        registry: what is filled.
        file: the operator's file.
    """

    def __init__(self, registry: Registry, file: CatalogueFile) -> None:
        self._registry = registry
        self._file = file
        self._default: str | None = None

    def refresh(self) -> tuple[str, ...]:
        """Take what the file says now, and fill an empty slot; warnings about the file.

        Raises:
            UnusableFile: the file says something wrong. The registry is as it was, its slot filled.
        """
        try:
            found = self._file.read(self._registry.apis().keys())
            if found is None:
                return ()
            self._registry.claim(FILE_SOURCE, Offer(found.rows))
            self._choose(found.default)
            return found.warnings
        finally:
            self._fill()

    def _choose(self, default: str | None) -> None:
        """Choose what the file says, unless it says what it said before: then somebody may have chosen otherwise."""
        chosen = self._registry.chosen()
        if default != self._default or chosen is None or not chosen.usable:
            self._registry.choose(default)
        self._default = default

    def _fill(self) -> None:
        """Put the placeholder into an empty slot, and never over a chosen model."""
        if self._registry.chosen(MAIN) is not None:
            return
        if self._registry.find(PLACEHOLDER.ref) is None:
            self._registry.claim(PLACEHOLDER_SOURCE, Offer((PLACEHOLDER,)))
        self._registry.choose(PLACEHOLDER.ref)
