"""One output stream of a running command: kept in memory while it is small, moved to a file when it is not.

Owns the reading end of one pipe. Does not know whose output it is, nor what text is: bytes only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import Final

import msgspec

HEAD_BYTES: Final = 64 * 1024
"""What one stream keeps in memory before it needs a file."""

_PIECE: Final = 64 * 1024
_WIDE_PIPE: Final = 1 << 20
TURN_BYTES: Final = 4 << 20
"""What one stream is read by at a time, so that a flood on one does not starve the others."""


class Excerpt(msgspec.Struct, frozen=True):
    """Both ends of a stream."""

    head: bytes
    tail: bytes
    """Empty when ``head`` is everything."""
    total: int
    """Bytes that were written, shown and kept or not."""
    dropped: int = 0
    """Bytes that nothing keeps."""


class Budget:
    """Bytes that may still be put on disk: by one command, and then out of what all of them may together.

    Args:
        most: how many in all.
        shared: what these are a part of.
    """

    __slots__ = ("_most", "_shared", "spent")

    def __init__(self, most: int, shared: Budget | None = None) -> None:
        self._most = most
        self._shared = shared
        self.spent = 0

    @property
    def left(self) -> int:
        """How many there still may be."""
        mine = self._most - self.spent
        return mine if self._shared is None else min(mine, self._shared.left)

    def spend(self, size: int) -> None:
        """Take note of what was written."""
        self.spent += size
        if self._shared is not None:
            self._shared.spend(size)

    def release(self) -> None:
        """Give back to the others what was spent, because it is not counted here any more."""
        if self._shared is not None:
            self._shared.spent -= self.spent


class Capture:
    """The output that came so far.

    Args:
        descriptor: the reading end, not blocking. Closed by whoever opened it.
        budget: shared with the other stream of the command.
    """

    __slots__ = ("_budget", "_file", "_full", "_head", "_tail", "descriptor", "dropped", "ended", "kept")

    def __init__(self, descriptor: int, budget: Budget) -> None:
        self.descriptor = descriptor
        self.ended = False
        self.kept = 0
        self.dropped = 0
        self._budget = budget
        self._head = bytearray()
        self._tail = b""
        self._file: int | None = None
        self._full = False

    @property
    def total(self) -> int:
        """Bytes that came."""
        return self.kept + self.dropped

    @property
    def outgrown(self) -> bool:
        """Whether there is more in memory than should be: ``keep_in`` a file now."""
        return len(self._head) > HEAD_BYTES and not self._full

    def drain(self, limit: int = TURN_BYTES) -> bool:
        """Take what is in the pipe, up to about ``limit`` bytes or until outgrown; whether the stream has ended."""
        taken = 0
        while taken < limit and not self.ended and not self.outgrown:
            try:
                size = self._take()
            except BlockingIOError:
                break
            except OSError:
                size = 0
            self.ended = size == 0
            taken += size
        return self.ended

    def keep_in(self, file: int | None) -> None:
        """Move to a file what is in memory, and all that comes from now on.

        Args:
            file: owned from now on. ``None`` when none can be made: what is in memory stays, the rest is counted.
        """
        self._file = file
        if file is None:
            self._full = True
            return
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(self.descriptor, fcntl.F_SETPIPE_SZ, _WIDE_PIPE)
        head, self._head, self.kept = bytes(self._head), bytearray(), 0
        self._store(head)

    def excerpt(self, size: int) -> Excerpt:
        """Give both ends of what came, together at most ``size`` bytes; of what cannot be read back, nothing."""
        try:
            return self._excerpt(size)
        except OSError:
            return Excerpt(b"", b"", self.total, self.total)

    def _excerpt(self, size: int) -> Excerpt:
        if self.total <= size and not self.dropped:
            return Excerpt(self.read(0, self.kept), b"", self.total)
        half = size // 2
        head = self.read(0, min(half, self.kept))
        if self.dropped:
            return Excerpt(head, self._tail[-half:], self.total, self.dropped)
        return Excerpt(head, self.read(max(half, self.kept - half), half), self.total)

    def last(self, size: int) -> bytes:
        """Give the end of what came, at most ``size`` bytes."""
        if self.dropped:
            return self._tail[-size:]
        with contextlib.suppress(OSError):
            return self.read(max(0, self.kept - size), size)
        return b""

    def read(self, offset: int, size: int) -> bytes:
        """Read from what was kept.

        Raises:
            OSError: the disk does not give it back.
        """
        if self._file is None:
            return bytes(self._head[offset : offset + size])
        return os.pread(self._file, size, offset)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _take(self) -> int:
        if self._file is not None and not self._full and self._budget.left > 0:
            size = self._splice(self._file)
            if size is not None:
                return size
        data = os.read(self.descriptor, _PIECE)
        self._store(data)
        return len(data)

    def _splice(self, file: int) -> int | None:
        """Let the kernel move bytes to the file without our touching them; ``None`` where it cannot."""
        if not hasattr(os, "splice"):
            return None
        try:
            size = os.splice(self.descriptor, file, min(_WIDE_PIPE, self._budget.left))
        except BlockingIOError:
            raise
        except OSError:
            return None  # A file system without it, or a full one: writing finds out which.
        self.kept += size
        self._budget.spend(size)
        return size

    def _store(self, data: bytes) -> None:
        if self._file is None and not self._full:
            self._head += data
            self.kept += len(data)
            return
        stored = self._write(data)
        self.kept += stored
        if stored < len(data):
            # For good, though the others may give room back: what is kept is the beginning, without a hole.
            self._full = True
            self.dropped += len(data) - stored
            self._tail = (self._tail + data[stored:])[-HEAD_BYTES:]

    def _write(self, data: bytes) -> int:
        if self._file is None or self._full:
            return 0
        wanted, done = min(len(data), self._budget.left), 0
        try:
            while done < wanted:
                done += os.write(self._file, data[done:wanted])
        except OSError:
            self._full = True
        self._budget.spend(done)
        return done
