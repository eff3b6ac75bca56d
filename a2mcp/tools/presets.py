"""Which of our own tools a daemon offers: a preset, less those that are switched off.

Owns the names and their order, so that settings can be checked without loading a tool.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec


class Preset(enum.StrEnum):
    """A choice of tools."""

    MINIMAL = "minimal"
    """The fewest with which everything can be done."""
    CODING = "coding"
    """What work in a repository takes."""
    FULL = "full"
    """All there are."""


_CODING: Final = ("read", "write", "edit", "bash", "jobs", "glob", "grep")

TOOLS: Final = {
    Preset.MINIMAL: ("read", "bash", "jobs"),
    Preset.CODING: _CODING,
    Preset.FULL: _CODING,
}


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The setting ``tools``."""

    preset: Preset = Preset.FULL
    off: tuple[str, ...] = ()
    """Tools of the preset that are not offered."""

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that are offered, in the order of the catalogue."""
        return tuple(name for name in TOOLS[self.preset] if name not in self.off)
