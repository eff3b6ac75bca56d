"""A relay between a client and the daemon that changes no byte and remembers them all.

So what a client negotiated is read off the wire, whether it tells or not.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from typing import Self

_SENT = re.compile(rb"^mcp-protocol-version:[ \t]*([\w-]+)", re.IGNORECASE | re.MULTILINE)
_AGREED = re.compile(rb'"result":\{"protocolVersion":"([\w-]+)"')


class Tap:
    """Listens on a port of its own and relays to another."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.port = int(self._listener.getsockname()[1])
        self.from_client = bytearray()
        self.from_server = bytearray()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._open):
            _end(each)
            each.close()

    @property
    def version(self) -> str:
        """What the client spoke in the end; from the handshake where it sends no header."""
        found = _SENT.findall(self.from_client) or _AGREED.findall(self.from_server)
        return found[-1].decode() if found else "none"

    def asked(self, method: str) -> bool:
        """Whether the client sent a request of this method."""
        return re.search(rb'"method":\s?"%b"' % method.encode(), self.from_client) is not None

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._open += [near, far]
                self._relay(near, far, self.from_client)
                self._relay(far, near, self.from_server)

    def _relay(self, source: socket.socket, sink: socket.socket, seen: bytearray) -> None:
        def copy() -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    seen.extend(data)
                    sink.sendall(data)
            _end(sink, socket.SHUT_WR)

        threading.Thread(target=copy, daemon=True).start()


def _end(sock: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(how)
