"""What a daemon says to its operator, without ever waiting for somebody to read it.

Owns the text stream on descriptor 2, and sees that there is one and that no secret is said on it. A program that starts
the daemon with a pipe and never reads it must not be able to stop it: the first thread to log would wait for ever, and
then all the others for it.
"""

from __future__ import annotations

import io
import os
import select
import threading
from typing import Final

from a2mcp.masking import mask

FD: Final = 2
_AT_ONCE: Final = select.PIPE_BUF
"""A pipe that is ready takes so many bytes without waiting."""


def occupy_standard_descriptors() -> None:
    """Open what was closed of 0, 1 and 2: else a socket would get the number, and with it what is printed."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= FD:
        pass
    os.close(descriptor)


class Stderr(io.TextIOBase):
    """A text stream that drops what nobody takes, and says so when somebody does again.

    Args:
        fd: where to write; stays open.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, fd: int = FD) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._lock = threading.RLock()
        self._dropped = 0

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Write the text without the secrets in it, or drop it."""
        data = mask(text).encode(self.encoding, self.errors)
        with self._lock:
            if self._dropped and self._send(b"[a2mcp] %d messages were dropped: nobody read them\n" % self._dropped):
                self._dropped = 0
            if self._dropped or not self._send(data):
                self._dropped += 1
        return len(text)

    def _send(self, data: bytes) -> bool:
        for start in range(0, len(data), _AT_ONCE):
            if not self._poll.poll(0):
                return False
            try:
                os.write(self._fd, data[start : start + _AT_ONCE])
            except OSError:  # The reader has gone, or the disk is full: there is nobody to tell.
                return False
        return True
