"""Warnings about what strangers can bring about as often as they like, told now and then."""

from __future__ import annotations

import logging
import time
from typing import Final

EVERY_S: Final = 60.0

logger = logging.getLogger("a2mcp.http")


class Throttle:
    """Warns of the same thing once a minute at most, so that nobody can flood the log."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}

    def warn(self, what: str, more: str = "") -> None:
        """Warn of something unless it was told lately; ``more`` is said with it and does not make it another thing."""
        now = time.monotonic()
        if now - self._told.get(what, -EVERY_S) >= EVERY_S:
            self._told[what] = now
            logger.warning("[a2mcp] warning: %s%s", what, more)
