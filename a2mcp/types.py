"""The ids and aliases that every part shares."""

import uuid
from typing import Any, NewType

CallId = NewType("CallId", str)
"""Our own UUID of one tools/call. Never the caller's JSON-RPC id: clients send ``1`` for every call."""

SessionId = NewType("SessionId", str)
"""The UUID that ``initialize`` answered with in ``mcp-session-id``."""

JobId = NewType("JobId", str)
"""The short name of a command that outlived its call, for example ``j7f3a``."""

JsonObject = dict[str, Any]
"""A decoded JSON object whose members are not known here."""


def new_call_id() -> CallId:
    """Make the id of a call: a random UUID."""
    return CallId(str(uuid.uuid4()))
