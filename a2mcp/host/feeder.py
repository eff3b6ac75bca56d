"""Standard input of a command that takes more of it while it runs. Owns the writing end of one pipe; never blocks."""

from __future__ import annotations

import os
from typing import Final

from a2mcp.errors import ToolError

WAITING_BYTES: Final = 1 << 20
"""What may wait for a command that does not read."""


class Feeder:
    """A queue of bytes in front of a pipe.

    Args:
        descriptor: the writing end, not blocking. Closed by whoever opened it.
    """

    __slots__ = ("_ending", "_waiting", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._waiting = bytearray()
        self._ending = False

    def offer(self, data: bytes) -> None:
        """Add to what the command will read; no bytes at all mean end-of-file after what waits.

        Raises:
            ToolError: end-of-file was sent already, or too much waits.
        """
        if self._ending:
            raise ToolError("Standard input of this job is closed.", hint="Start a new job to send more.")
        if len(self._waiting) + len(data) > WAITING_BYTES:
            raise ToolError(
                f"The job has not read its input: {len(self._waiting)} bytes wait and {WAITING_BYTES} may.",
                hint="Look at its output and write again when it reads.",
            )
        self._waiting += data
        self._ending = not data

    def flush(self) -> bool:
        """Pass on what the pipe takes; whether the pipe is to be closed now: all was said, or nobody listens."""
        try:
            while self._waiting:
                del self._waiting[: os.write(self.descriptor, self._waiting)]
        except BlockingIOError:
            return False
        except OSError:
            self._waiting.clear()
            self._ending = True
        return self._ending

    @property
    def idle(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting
