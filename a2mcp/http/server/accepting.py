"""The pause of a server for which the system has no descriptor left. Owns when it ends; knows no socket."""

from __future__ import annotations

import errno
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from a2mcp.http.server.throttle import Throttle

PAUSE_S: Final = 1.0

_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Pause:
    """Whether to watch for connections.

    The connection that cannot be taken stays ready, so that watching on would spin.
    """

    def __init__(self, throttle: Throttle) -> None:
        self._throttle = throttle
        self._until = 0.0

    @property
    def over(self) -> bool:
        """Whether there is none, or its time is up."""
        if self._until and time.monotonic() >= self._until:
            self._until = 0.0
        return not self._until

    def begin(self, cause: OSError) -> None:
        """Take what accepting raised; only a shortage makes a pause."""
        if cause.errno in _SHORT:
            self._until = time.monotonic() + PAUSE_S
            self._throttle.warn("cannot accept connections for now", f": {cause.strerror}")
