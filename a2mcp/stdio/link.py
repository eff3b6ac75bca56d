"""The daemon's side: one message posted on a connection of its own, and the messages that come back.

Reads both forms of a reply. Knows no method and no id.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from a2mcp.errors import A2mcpError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2mcp.config.endpoint import Endpoint

CONNECT_S: Final = 5.0
"""Seconds to be let in; how long an answer takes is the caller's business."""

_UNREACHABLE: Final = -32000


class NoAnswer(A2mcpError):
    """No answer came; whether the message arrived is not known."""

    code = _UNREACHABLE


class NotTaken(NoAnswer):
    """The message was certainly not looked at: nobody listens there, or the token is not the one in force."""


class Aborted(Exception):
    """Nobody waits for the answer any more."""


class Leash:
    """How one exchange is ended from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.aborted = False

    def hold(self, sock: socket.socket) -> None:
        """Take the connection of an exchange that begins.

        Raises:
            Aborted: it is not wanted any more.
        """
        with self._lock:
            self._socket = sock
        self.check()

    def abort(self) -> None:
        """End the exchange now. Closing is how the daemon learns that nobody waits."""
        with self._lock:
            self.aborted = True
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def check(self) -> None:
        """Stop here if the exchange was ended.

        Raises:
            Aborted: that.
        """
        if self.aborted:
            raise Aborted


def post(
    endpoint: Endpoint, body: bytes, headers: dict[str, str], leash: Leash, timeout: float | None = None
) -> Iterator[bytes]:
    """Post one message and give each message of the reply.

    Args:
        endpoint: where the daemon is, and its token.
        body: the message.
        headers: what is sent with it, beside the token.
        leash: ends it.
        timeout: seconds of silence that are too many; None waits as long as it takes.

    Raises:
        NotTaken, NoAnswer: see there.
        Aborted: the leash was pulled.
    """
    url = urlsplit(endpoint.url)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=CONNECT_S)
    authorized = headers | {"Authorization": f"Bearer {endpoint.token}", "Connection": "close"}
    try:
        sock = _connect(connection)
        leash.hold(sock)
        sock.settimeout(timeout)
        # A body that is refused is not read to its end; the answer that says why is there all the same.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request("POST", url.path, body, authorized)
        with connection.getresponse() as response:
            yield from _messages(response)
    except (OSError, http.client.HTTPException) as error:
        leash.check()
        raise NoAnswer(f"The daemon's answer did not come: {str(error) or type(error).__name__}.") from error
    finally:
        connection.close()


def _connect(connection: http.client.HTTPConnection) -> socket.socket:
    try:
        connection.connect()
    except OSError as error:
        raise NotTaken(f"Nothing answers at {connection.host}:{connection.port}.") from error
    sock: socket.socket = connection.sock
    return sock


def _messages(response: http.client.HTTPResponse) -> Iterator[bytes]:
    if response.status == http.client.UNAUTHORIZED:
        raise NotTaken("The daemon has another token by now.")
    kind = (response.getheader("content-type") or "").partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        yield from events(iter(response.readline, b""))
    elif body := response.read():
        if kind != "application/json":
            raise NoAnswer(f"The daemon answered with HTTP status {response.status}.")
        yield body
    elif response.status >= http.client.BAD_REQUEST:
        raise NoAnswer(f"The daemon answered with HTTP status {response.status}.")


def events(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Give the data of each event of a stream; comments and the other fields say nothing here."""
    data: list[bytes] = []
    for line in lines:
        field, _, value = line.rstrip(b"\r\n").partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif not (field or value) and data and line.strip() == b"":
            yield b"\n".join(data)
            data = []
