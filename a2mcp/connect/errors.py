"""What can stop the setting up of a client or a service. Whatever it is, the client's file is as it was."""

from a2mcp.errors import A2mcpError


class BrokenFile(A2mcpError):
    """A client's file is not what its kind says, or not in a shape in which a server could be added."""


class ClientFailed(A2mcpError):
    """A client's own command, or the service manager's, did not do what it was asked."""
