"""A program that searches, run as a child: its output in chunks, and its end when enough is enough.

Owns deadlines, bounds and killing. Does not know what the program prints.
"""

from __future__ import annotations

import contextlib
import enum
import os
import selectors
import signal
import subprocess
import time
from typing import IO, TYPE_CHECKING, Final, Self

from a2mcp.host import process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

CHUNK: Final = 256 * 1024
_STDERR_KEPT: Final = 64 * 1024
_TICK: Final = 0.1
"""Seconds between two looks at whether somebody still waits for the answer, while the child prints nothing."""
_ADDRESS_SPACE: Final = 4 << 30
"""Bytes a child may map: a line of many gigabytes ends the child, not the machine."""


class End(enum.Enum):
    """Why there is no more output."""

    OPEN = enum.auto()
    DONE = enum.auto()
    DEADLINE = enum.auto()
    CANCELLED = enum.auto()


class SearchChild:
    """A child with its own process group and no way to ask for anything.

    Leaving the ``with`` block ends the whole group, wherever it was.

    Args:
        argv: the program and its arguments.
        cwd: where it runs.
        seconds: how long it may take in all.
        cancelled: asked now and then; the child is ended once it says true.

    Raises:
        OSError: it could not be started.
    """

    def __init__(self, argv: Sequence[str], cwd: Path, *, seconds: float, cancelled: Callable[[], bool]) -> None:
        self._deadline = time.monotonic() + seconds
        self._cancelled = cancelled
        self._stderr = bytearray()
        self.end = End.OPEN
        self._process = process.launch(
            argv,
            cwd=cwd,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        _bound_memory(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in self._streams():
            stream.close()

    @property
    def complaints(self) -> list[str]:
        """What it wrote to stderr, line by line; the beginning only, if it was much."""
        return self._stderr.decode(errors="backslashreplace").splitlines()

    @property
    def complete(self) -> bool:
        """True if it said all it had to say."""
        return self.end is End.DONE

    def chunks(self) -> Iterator[bytes]:
        """Yield its output until it closes it, or its time is over; ``end`` says which."""
        with selectors.DefaultSelector() as selector:
            for stream in self._streams():
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                yield from self._ready(selector)
                if self.end is not End.OPEN:
                    return
        self.end = End.DONE

    def _ready(self, selector: selectors.BaseSelector) -> Iterator[bytes]:
        left = self._deadline - time.monotonic()
        for key, _ in selector.select(max(0.0, min(_TICK, left))):
            chunk = os.read(key.fd, CHUNK)
            if not chunk:
                selector.unregister(key.fileobj)
            elif key.fileobj is self._process.stderr:
                self._stderr += chunk[: _STDERR_KEPT - len(self._stderr)]
            else:
                yield chunk
        if left <= 0:
            self.end = End.DEADLINE
        elif self._cancelled():
            self.end = End.CANCELLED

    def _streams(self) -> list[IO[bytes]]:
        return [stream for stream in (self._process.stdout, self._process.stderr) if stream is not None]


def _environment() -> dict[bytes, bytes]:
    """Pass on what every child gets, without what changes a searcher's defaults."""
    kept = process.inherited().items()
    return {name: value for name, value in kept if not name.startswith(b"PYTHON") and name != b"RIPGREP_CONFIG_PATH"}


def _bound_memory(pid: int) -> None:
    """Set the limit from outside: code between fork and exec (``preexec_fn``) can deadlock in a threaded process."""
    import resource  # noqa: PLC0415 - POSIX only, and prlimit on Linux only

    if hasattr(resource, "prlimit"):
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
