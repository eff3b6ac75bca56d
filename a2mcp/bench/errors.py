"""What can stop a benchmark before it has measured anything; a failed call is not an error here, it is counted."""

from a2mcp.errors import A2mcpError


class BadPlan(A2mcpError):
    """What was asked for cannot be measured: wrong usage, found before the first byte is sent."""

    exit_code = 2


class HandshakeFailed(A2mcpError):
    """The server could not be reached, or did not take the opening of a session."""
