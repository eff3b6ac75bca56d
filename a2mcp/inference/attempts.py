"""Attempts at a request: which failures may pass, how long to wait, and what is told of those that do not.

Needs the extra, whose errors it sorts.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from pydantic_ai import exceptions as faults

from a2mcp.inference.transcript import Outcome
from a2mcp.inference.tripwire import SENTINEL

if TYPE_CHECKING:
    from a2mcp.inference.turn import Hands

TEMPORARY: Final = (
    faults.ModelRateLimitError,
    faults.ModelUnavailableError,
    faults.ModelServerError,
    faults.ModelConnectionError,
)
LONGEST_PAUSE_S: Final = 30.0
"""Between two attempts, whatever the provider asks for."""
SHOWN: Final = 500
"""Characters of what went wrong at a provider."""

logger = logging.getLogger("a2mcp.inference")


async def pause(error: Exception, attempt: int, hands: Hands) -> None:
    """Wait until the next attempt: as long as the provider asks for, within reason, else longer each time.

    Raises:
        Exception: the error, where another attempt would not help or is not wanted.
    """
    if not isinstance(error, TEMPORARY) or hands.denied() or attempt > hands.retries():
        raise error
    asked: float | None = getattr(error, "retry_after", None)
    await asyncio.sleep(min(0.5 * 2 ** (attempt - 1) if asked is None else max(0.0, asked), LONGEST_PAUSE_S))


def went_wrong(cause: Exception, hands: Hands) -> tuple[Outcome, str]:
    """Put into words what a provider, or the library, made of it."""
    if hands.denied():  # Whatever it was: the switch was turned meanwhile, and what is denied is refused.
        return Outcome.REFUSED, SENTINEL
    if isinstance(cause, faults.AgentRunError):
        return Outcome.FAILED, f"The model could not be asked: {hands.clean(str(cause))[:SHOWN]}"
    logger.warning("[a2mcp] an agent's turn failed", exc_info=cause)
    return Outcome.FAILED, f"The turn failed: {hands.clean(f'{type(cause).__name__}: {cause}')[:SHOWN]}"
