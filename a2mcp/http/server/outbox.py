"""What one connection still has to send: bytes and pieces of files, in order.

A file goes from the page cache to the socket without passing through this process, and only so much of it at a time, so
that one fast reader does not keep the loop from everybody else.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

from a2mcp.protocol.response import FilePart

if TYPE_CHECKING:
    import socket

_HAS_SENDFILE = hasattr(os, "sendfile")


class Truncated(OSError):
    """A file ended before what was promised of it was sent; the connection cannot go on."""


class Outbox:
    """The pieces to send. The connection's lock guards it."""

    def __init__(self) -> None:
        self._pieces: deque[memoryview | FilePart] = deque()
        self.size = 0
        """Bytes that wait."""

    def add(self, piece: bytes | FilePart) -> None:
        """Put a piece behind the others; a file part is closed when it is sent or given up."""
        if isinstance(piece, FilePart):
            self._pieces.append(piece)
            self.size += piece.length
        elif piece:
            self._pieces.append(memoryview(piece))
            self.size += len(piece)

    def send(self, sock: socket.socket, budget: int) -> int:
        """Send until the socket takes no more, nothing is left, or ``budget`` bytes are sent; how many were.

        Raises:
            OSError: the peer has gone, or a file could not be read.
        """
        total = 0
        while self._pieces and total < budget:
            try:
                sent = self._send_first(sock, budget - total)
            except BlockingIOError:
                break
            self.size -= sent
            total += sent
        return total

    def overdue(self, still_s: float, most_s: float) -> bool:
        """Whether to give up on a reader who has taken nothing for ``still_s``; a file knows itself, bytes do not."""
        piece = self._pieces[0] if self._pieces else None
        return piece.file.overdue(still_s) if isinstance(piece, FilePart) else still_s > most_s

    def close(self) -> None:
        """Give up what waits, and close its files."""
        while self._pieces:
            piece = self._pieces.popleft()
            if isinstance(piece, FilePart):
                piece.file.close()
        self.size = 0

    def _send_first(self, sock: socket.socket, budget: int) -> int:
        piece = self._pieces[0]
        if isinstance(piece, FilePart):
            return self._send_file(sock, piece, min(budget, piece.length))
        sent = sock.send(piece[:budget])
        self._replace_first(piece[sent:] if sent < len(piece) else None)
        return sent

    def _send_file(self, sock: socket.socket, part: FilePart, count: int) -> int:
        sent = _send_range(sock, part.file.fileno(), part.offset, count) if part.length else 0
        if not sent and part.length:
            raise Truncated("the file became shorter while it was sent")
        part.file.sent(sent)
        rest = part.length - sent
        if not rest:
            part.file.close()
        self._replace_first(FilePart(part.file, part.offset + sent, rest) if rest else None)
        return sent

    def _replace_first(self, rest: memoryview | FilePart | None) -> None:
        if rest is None:
            self._pieces.popleft()
        else:
            self._pieces[0] = rest


def _send_range(sock: socket.socket, fd: int, offset: int, count: int) -> int:
    if _HAS_SENDFILE:
        return os.sendfile(sock.fileno(), fd, offset, count)
    return sock.send(os.pread(fd, min(count, 1 << 16), offset))
