"""What one connection still has to send: bytes and pieces of files, in order.

A file goes from the page cache to the socket without passing through this process, and only so much of it at a time, so
that one fast reader does not keep the loop from everybody else.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Final

from a2mcp.protocol.response import FilePart

if TYPE_CHECKING:
    import socket

SMALL: Final = 8192
"""Bytes of a piece that is sent together with its neighbours."""
TOGETHER: Final = 65_536
SHORTER: Final = "the file became shorter while it was sent"
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
        if isinstance(piece, FilePart) and piece.length > SMALL:
            sent = _send_range(sock, piece.file.fileno(), piece.offset, min(budget, piece.length))
            if not sent:
                raise Truncated(SHORTER)
        else:
            sent = sock.send(self._together(budget))
        self._took(sent)
        return sent

    def _together(self, budget: int) -> bytes | memoryview:
        """The pieces at the front that are small, as one; or of a large one what may be sent.

        PERF: many ranges of a file are many pieces, and to send each by itself would hold up everybody else.
        """
        first = self._pieces[0]
        if isinstance(first, memoryview) and (len(first) > SMALL or len(self._pieces) == 1):
            return first[:budget]
        taken: list[bytes | memoryview] = []
        size = 0
        for piece in self._pieces:
            if _length(piece) > SMALL or size + _length(piece) > TOGETHER:
                break
            taken.append(_content(piece))
            size += _length(piece)
        return b"".join(taken)

    def _took(self, sent: int) -> None:
        """Let go of what was sent, and of the empty pieces behind it."""
        while self._pieces:
            piece = self._pieces[0]
            count = min(sent, _length(piece))
            sent -= count
            if isinstance(piece, FilePart) and count:
                piece.file.sent(count)
            if count < _length(piece):
                self._pieces[0] = _rest(piece, count)
                return
            if isinstance(piece, FilePart):
                piece.file.close()
            self._pieces.popleft()


def _length(piece: memoryview | FilePart) -> int:
    return piece.length if isinstance(piece, FilePart) else len(piece)


def _content(piece: memoryview | FilePart) -> bytes | memoryview:
    if not isinstance(piece, FilePart):
        return piece
    content = os.pread(piece.file.fileno(), piece.length, piece.offset)
    if len(content) < piece.length:
        raise Truncated(SHORTER)
    return content


def _rest(piece: memoryview | FilePart, count: int) -> memoryview | FilePart:
    if isinstance(piece, FilePart):
        return FilePart(piece.file, piece.offset + count, piece.length - count)
    return piece[count:]


def _send_range(sock: socket.socket, fd: int, offset: int, count: int) -> int:
    if _HAS_SENDFILE:
        return os.sendfile(sock.fileno(), fd, offset, count)
    return sock.send(os.pread(fd, min(count, 1 << 16), offset))
