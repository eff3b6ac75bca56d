"""Models at the start of the daemon: the registry, filled from the operator's file."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from a2mcp.config.models import ModelsFile
from a2mcp.inference.models import Models

if TYPE_CHECKING:
    from a2mcp.clock import Clock
    from a2mcp.config.paths import Home

logger = logging.getLogger("a2mcp.inference")


def stocked(home: Home, clock: Clock) -> Models:
    """Make the registry of models and fill it.

    Raises:
        UnusableFile: the operator's file says something wrong.
    """
    models = Models.of(ModelsFile(home.models), clock)
    for warning in models.stock.refresh():
        logger.warning("[a2mcp] warning: %s", warning)
    return models
