"""One client: a connection that asks, waits for the answer, and asks again.

Owns its socket and its reader, and turns what happens to them into outcomes. It sets no clock and keeps no count: the
loop in ``load`` does, for all clients at once.
"""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING, Final

from a2mcp.bench.replies import Malformed, Reader, judge

if TYPE_CHECKING:
    from a2mcp.bench.messages import Template
    from a2mcp.bench.plan import Address

_READ: Final = 256 * 1024


class Client:
    """A closed-loop client. Its state is what it waits for: a connection, room to write, or a reply."""

    __slots__ = ("_address", "_reader", "_unsent", "closing", "connected", "ident", "sent_at", "socket", "template")

    def __init__(self, address: Address) -> None:
        self._address = address
        self._reader = Reader()
        self._unsent = b""
        self.socket: socket.socket | None = None
        self.connected = False
        self.closing = False
        """The server said that it will close the connection after this reply."""
        self.template: Template | None = None
        """What was asked and is not answered yet."""
        self.ident = 0
        self.sent_at = 0.0

    @property
    def wants_write(self) -> bool:
        """True while the socket matters for writing."""
        return not self.connected or bool(self._unsent)

    def open(self) -> socket.socket:
        """Begin to connect; ``on_writable`` tells when it has come about.

        Raises:
            OSError: there is no socket to be had, or the address was refused at once.
        """
        family = socket.AF_INET6 if ":" in self._address.ip else socket.AF_INET
        self.socket = connection = socket.socket(family, socket.SOCK_STREAM)
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = connection.connect_ex((self._address.ip, self._address.port))
        if code not in {0, errno.EINPROGRESS}:
            raise OSError(code, errno.errorcode.get(code, "connect"))
        self.connected = code == 0
        return connection

    def close(self) -> None:
        """Drop the connection and everything half done on it."""
        if self.socket is not None:
            self.socket.close()
        self.socket = None
        self.connected = self.closing = False
        self.template = None
        self._unsent = b""
        self._reader = Reader()

    def ask(self, template: Template, ident: int, now: float) -> None:
        """Send a request, or as much of it as the kernel takes.

        Raises:
            OSError: the connection is gone.
        """
        self.template, self.ident, self.sent_at = template, ident, now
        self._send(template.render(ident))

    def on_writable(self) -> None:
        """Finish connecting, or send what was left.

        Raises:
            OSError: connecting failed, or the connection is gone.
        """
        if not self.connected and self.socket is not None:
            code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, errno.errorcode.get(code, "connect"))
            self.connected = True
        elif self._unsent:
            self._send(self._unsent)

    def on_readable(self) -> tuple[bool, str | None]:
        """Read what has come.

        Returns:
            Whether the reply is whole, and the kind of error it is, if it is one.

        Raises:
            OSError: the connection is gone; ``ConnectionAbortedError`` when it was closed before the reply was whole.
        """
        assert self.socket is not None  # noqa: S101 - only a registered client gets events
        try:
            data = self.socket.recv(_READ)
        except (BlockingIOError, InterruptedError):
            return False, None
        if self.template is None:
            raise ConnectionAbortedError("closed between two requests")
        try:
            reply = self._reader.feed(data) if data else self._reader.finish()
        except Malformed:
            self.closing = True
            return True, "not http"
        if reply is None:
            if not data:
                raise ConnectionAbortedError("closed before the reply was whole")
            return False, None
        self.closing = reply.head.close or not data
        return True, judge(reply, self.ident if self.template.expects_reply else None)

    def _send(self, data: bytes) -> None:
        assert self.socket is not None  # noqa: S101 - only an open client is asked
        try:
            sent = self.socket.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        self._unsent = data[sent:]


def kind_of(error: OSError) -> str:
    """The name under which a failure of the connection is counted."""
    match error:
        case ConnectionRefusedError():
            return "refused"
        case ConnectionResetError() | BrokenPipeError():
            return "reset"
        case ConnectionAbortedError():
            return "closed"
        case _:
            return (errno.errorcode.get(error.errno, "") if error.errno else "").lower() or "socket"
