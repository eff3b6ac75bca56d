"""The operator's channel, served: a plain Waitress on a Unix socket, in threads of its own.

Its app may wait for actors, so it must not run in the loop of the main server; and a stuck main loop must not take
``a2mcp status`` with it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING, Any, Final

from waitress.adjustments import Adjustments
from waitress.server import UnixWSGIServer

from a2mcp.http.server.accepting import Pause
from a2mcp.http.server.throttle import Throttle

if TYPE_CHECKING:
    import socket

THREADS: Final = 2
STOP_S: Final = 1.0

logger = logging.getLogger("a2mcp.operator.threads")
# That a question waits for its turn, or is still being answered at the end, is nothing that the operator must know of.
logger.setLevel(logging.ERROR)


class OperatorServer:
    """Serves an app on a bound Unix socket until stopped."""

    def __init__(self, app: Any, sock: socket.socket) -> None:
        self._server = _Server(app, sock)
        self._thread = threading.Thread(target=self._run, name="Operator", daemon=True)

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more questions, but let those that are being answered finish, for a moment.

        Where that is too short for one, the thread of its answer and the loop end with the process.
        """
        dispatcher = self._server.task_dispatcher
        # An answer wakes the loop, which must still be there: `a2mcp stop` is such a question.
        dispatcher.shutdown(cancel_pending=False, timeout=STOP_S)
        if not dispatcher.threads:
            self._server.trigger.pull_trigger(self._server.close)

    def _run(self) -> None:
        # The listening socket was closed under the loop: this is how it ends.
        with contextlib.suppress(OSError):
            self._server.run()


class _Server(UnixWSGIServer):  # type: ignore[misc]  # Waitress has no types.
    """Waitress's own, but for what it does without a descriptor left: it would spin and write a traceback each time."""

    def __init__(self, app: Any, sock: socket.socket) -> None:
        self._pause = Pause(Throttle())
        # ``poll``, because a connection may get a descriptor over 1023 when the main server has many.
        adj = Adjustments(threads=THREADS, asyncore_use_poll=True, clear_untrusted_proxy_headers=False, ident=None)
        info = (sock.family, sock.type, sock.proto, sock.getsockname())
        super().__init__(app, _sock=sock, adj=adj, bind_socket=False, sockinfo=info)
        self.task_dispatcher.logger = self.task_dispatcher.queue_logger = logger

    def readable(self) -> bool:
        """Whether to watch for new connections."""
        return self._pause.over and bool(super().readable())

    def accept(self) -> Any:
        """Take the connection that waits, if the system has room for it."""
        try:
            return super().accept()
        except OSError as cause:
            self._pause.begin(cause)
            return None
