"""Standard input of a command that takes more of it while it runs. Owns the writing end of one pipe; never blocks."""

from __future__ import annotations

import os
from functools import partial
from typing import IO, TYPE_CHECKING, Final

from a2mcp.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.host.loop import Loop

WAITING_BYTES: Final = 1 << 20
"""What may wait for a command that does not read."""


class Feeder:
    """A queue of bytes in front of a pipe.

    Args:
        stream: the writing end, not blocking. Closed here when all was said.
    """

    __slots__ = ("_ending", "_stream", "_waiting")

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._waiting = bytearray()
        self._ending = False

    @property
    def descriptor(self) -> int:
        """The descriptor of the pipe, or -1 once it is closed."""
        return -1 if self._stream.closed else self._stream.fileno()

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

    def pump(self, loop: Loop, fault: Callable[[], None]) -> None:
        """Pass on what the pipe takes, and the rest when there is room."""
        loop.forget(self.descriptor)
        self._flush()
        if self._waiting:
            loop.on_writable(self.descriptor, partial(self.pump, loop, fault), fault)

    def _flush(self) -> None:
        """Write without waiting; close the pipe when all was said or nobody listens."""
        try:
            while self._waiting:
                del self._waiting[: os.write(self.descriptor, self._waiting)]
        except BlockingIOError:
            return
        except OSError:
            self._waiting.clear()
            self._ending = True
        if self._ending:
            self._stream.close()
