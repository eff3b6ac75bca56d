"""What ``doctor`` asks about, and the form of an answer."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec

from a2mcp.config.paths import Home
from a2mcp.config.schema import LimitSettings, Settings
from a2mcp.http.ports import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Verdict(enum.StrEnum):
    """How a question was answered."""

    OK = "ok"
    WARN = "warn"
    """It works, but not as well or as safely as it could."""
    FAIL = "FAIL"


class Finding(msgspec.Struct, frozen=True):
    """One answer."""

    name: str
    verdict: Verdict
    fact: str
    mend: str = ""
    """What to do; empty when nothing need be done."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What every question may start from."""

    home: Home
    settings: Settings | None
    """None where there are none yet, or they are wrong."""
    served: bool
    """Whether a daemon holds the home."""
    status: Status | None
    """What it says of itself; None where it says nothing."""

    @property
    def limits(self) -> LimitSettings:
        """The limits in force, or those that a first start would have."""
        return self.settings.limits if self.settings else LimitSettings()


if TYPE_CHECKING:
    Question = Callable[[Seen], Iterator[Finding]]
