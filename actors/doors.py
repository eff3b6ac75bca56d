"""How the daemon gets its listening socket, and how many connections it can afford. Knows no actor."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from a2mcp.config import load
from a2mcp.errors import A2mcpError
from a2mcp.http.server.listen import affordable_connections, bind

if TYPE_CHECKING:
    import socket

    from a2mcp.config.paths import Home
    from a2mcp.config.schema import Settings

logger = logging.getLogger("a2mcp")


def listen(home: Home, settings: Settings) -> socket.socket:
    """Bind the port; another one, with a warning, where it is taken. One that was chosen is kept.

    Raises:
        CannotListen: the address cannot be listened on.
    """
    sock, as_asked = bind(settings.host, settings.port or 0)
    port = sock.getsockname()[1]
    if not as_asked:
        logger.warning(
            "[a2mcp] warning: port %d is taken; this time it is %d. Free the port, or update the clients' settings.",
            settings.port,
            port,
        )
    if settings.port is None:
        try:
            load.keep_port(home.config, port)
        except A2mcpError as error:
            logger.warning("[a2mcp] warning: the port could not be kept in the settings: %s", error)
    return sock


def affordable(settings: Settings) -> int:
    """How many connections may be open, given what the system allows."""
    wanted = settings.limits.connections
    affordable = affordable_connections(wanted)
    if affordable < wanted:
        logger.warning(
            "[a2mcp] warning: the limit on open files allows %d connections, not %d. Raise it with `ulimit -n`.",
            affordable,
            wanted,
        )
    return affordable
