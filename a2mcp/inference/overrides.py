"""What is set otherwise for as long as something lasts: never written to disk, gone with the process.

Owns the values. Whoever has such a setting reads it here each time it matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


class Overrides:
    """Settings that are overridden now. Read from any thread without a lock."""

    def __init__(self) -> None:
        self._now: Mapping[str, object] = {}

    def read(self, name: str, otherwise: T) -> T:
        """Return what the setting is overridden with, or what it is otherwise."""
        value = self._now.get(name, otherwise)
        return value if isinstance(value, type(otherwise)) else otherwise

    def replace(self, values: Mapping[str, object]) -> Mapping[str, object]:
        """Override exactly these; what was overridden before."""
        before, self._now = self._now, values
        return before
