"""The setting ``agent``: how far the host's own agent may go."""

from __future__ import annotations

import msgspec


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the agent, and whether it wakes by itself."""

    wake: bool = False
    """Whether the end of a job begins a turn of the Main session."""
    running: int = 8
    """Turns at one time."""
    steps: int = 50
    """Requests of one turn."""
    retries: int = 2
    """How often a request that failed for the moment is made again."""
    budget_tokens: int | None = None
    """Tokens of one day, both kinds together."""
    budget_requests: int | None = None
    """Requests of one day."""
    kept_bytes: int = 1 << 30
    """What all transcripts may take on disk."""
