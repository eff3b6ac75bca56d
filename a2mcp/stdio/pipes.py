"""The client's side: lines of bytes in, lines of bytes out. Knows nothing of what they say.

SECURITY: the two descriptors are taken away from the rest of the process. What anything else here prints goes to
standard error, and a program started here reads end-of-file, so no byte of the protocol is added or eaten.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from typing import IO, Final

from a2mcp.errors import BodyTooLarge

LONGEST_LINE: Final = 128 * 1024 * 1024
"""Bytes of one message; the daemon's own limit is lower or the same, and its answer says so."""

_REST: Final = 1 << 20


def take() -> tuple[Input, Output]:
    """Take standard input and output for the protocol alone."""
    lines, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    return Input(os.fdopen(lines, "rb")), Output(answers)


class Input:
    """The messages of the client."""

    def __init__(self, stream: IO[bytes], longest: int = LONGEST_LINE) -> None:
        self._stream = stream
        self._longest = longest

    def read(self) -> bytes | None:
        """Wait for the next message; None at the end. Empty lines, and either end of a line, are taken.

        Raises:
            BodyTooLarge: a line is longer than any message may be. It has been skipped.
        """
        while line := self._stream.readline(self._longest + 1):
            if len(line) > self._longest and not line.endswith(b"\n"):
                self._skip()
                raise BodyTooLarge(f"a message may have {self._longest} bytes")
            if message := line.strip(b" \t\r\n"):
                return message
        return None

    def close(self) -> None:
        """Read nothing more."""
        self._stream.close()

    def _skip(self) -> None:
        while (piece := self._stream.readline(_REST)) and not piece.endswith(b"\n"):
            pass


class Output:
    """What the client is sent. A message is written whole, whichever thread it comes from."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, True)
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._broken = False

    @property
    def gone(self) -> bool:
        """Whether nobody reads any more."""
        poll = select.poll()
        poll.register(self._descriptor, 0)
        return self._broken or any(event & select.POLLERR for _, event in poll.poll(0))

    def write(self, message: bytes) -> None:
        """Write one message. Its line breaks, which can only stand between its parts, become spaces."""
        line = message.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"
        with self._lock:
            self._write(memoryview(line))

    def _write(self, left: memoryview) -> None:
        try:
            while left and not self._broken:
                left = left[os.write(self._descriptor, left) :]
        except OSError:
            self._broken = True
