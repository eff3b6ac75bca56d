"""The operator's channel, served: a plain Waitress on a Unix socket, in threads of its own.

Its app may wait for actors, so it must not run in the loop of the main server; and a stuck main loop must not take
``a2mcp status`` with it.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final

from waitress.server import create_server

if TYPE_CHECKING:
    import socket

THREADS: Final = 2
STOP_S: Final = 1.0


class OperatorServer:
    """Serves an app on a bound Unix socket until stopped."""

    def __init__(self, app: Any, sock: socket.socket) -> None:
        # ``poll``, because a connection may get a descriptor over 1023 when the main server has many.
        self._server = create_server(
            app,
            sockets=[sock],
            threads=THREADS,
            asyncore_use_poll=True,
            clear_untrusted_proxy_headers=False,
            ident=None,
        )
        self._thread = threading.Thread(target=self._run, name="Operator", daemon=True)

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more questions, but let one that is being answered finish. The thread ends with the process."""
        # Its answer wakes the loop, which must still be there: `a2mcp stop` is such a question.
        self._server.task_dispatcher.shutdown(cancel_pending=False, timeout=STOP_S)
        self._server.trigger.pull_trigger(self._server.close)

    def _run(self) -> None:
        # The listening socket was closed under the loop: this is how it ends.
        with contextlib.suppress(OSError):
            self._server.run()
