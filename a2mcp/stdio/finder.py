"""Which daemon: looked up before each message, waited for while it restarts, and started where there is none.

Knows no file and starts nothing: it is given the means.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from a2mcp.errors import A2mcpError, NoDaemon

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.config.endpoint import Endpoint

RESTART_S: Final = 3.0
"""Seconds for which a daemon that was there is expected back, before another one is started in its place."""

STARTING_S: Final = 10.0
"""Seconds in which a daemon that holds its home must say where it serves; also what one that was there has to come back
where none may be started."""

_LOOK_S: Final = 0.02


class Finder:
    """Finds the daemon of one home.

    Args:
        read: reads the endpoint file.
        served: whether a daemon holds the home. SECURITY: the file alone is not believed; one that a killed daemon left
            behind may name a port that is somebody else's by now, who would be sent the token.
        start: starts a daemon and waits for it; None where that is not wanted.
    """

    def __init__(
        self, read: Callable[[], Endpoint | None], served: Callable[[], bool], start: Callable[[], object] | None
    ) -> None:
        self._read = read
        self._served = served
        self._start = start
        self._known = False
        self._one_at_a_time = threading.Lock()

    def find(self) -> Endpoint:
        """Say where the daemon is now; waits for one, or starts one.

        Raises:
            NoDaemon: there is none.
            A2mcpError: it could not be started.
        """
        found = self._look()
        if found is None:
            with self._one_at_a_time:
                found = self._look() or self._awaited()
        self._known = True
        return found

    def _look(self) -> Endpoint | None:
        return self._read() if self._served() else None

    def _awaited(self) -> Endpoint:
        patience = RESTART_S if self._start else STARTING_S
        found = self._within(patience) if self._known else None
        if found is None and self._served():
            found = self._within(STARTING_S)
        return found or self._started()

    def _within(self, seconds: float) -> Endpoint | None:
        deadline = time.monotonic() + seconds
        while (found := self._look()) is None and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return found

    def _started(self) -> Endpoint:
        if self._start is None:
            raise NoDaemon("No daemon runs.", hint="Start one with `a2mcp start`.")
        try:
            self._start()
        except A2mcpError:
            # Another bridge may have been faster by a moment; what it started is ours too.
            found = self._within(RESTART_S)
            if found is None:
                raise
            return found
        found = self._within(STARTING_S)
        if found is None:
            raise NoDaemon("The daemon that was started is gone.", hint="`a2mcp doctor` looks for the reason.")
        return found
