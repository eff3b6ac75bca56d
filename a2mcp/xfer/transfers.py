"""What is being moved through the share right now, and how many bytes have been since the start.

Knows no file and no connection: whoever moves bytes says so here, and asks whether to go on.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from a2mcp.host.paths import written

if TYPE_CHECKING:
    from a2mcp.clock import Clock

Direction = Literal["download", "upload"]
UPLOADS: Final = frozenset({"PUT", "PATCH"})
"""The methods whose body is a file."""
DIRECTIONS: Final[tuple[Direction, Direction]] = ("download", "upload")


class Transfer:
    """One file, or other content, on its way. Moved by one thread, read by any.

    Args:
        id: what stops it.
        name: the path below the share, as its client has it.
        direction: ``download`` or ``upload``.
        total: bytes that are to be moved; None where nobody knows.
        began: seconds of the monotonic clock.
    """

    __slots__ = ("began", "direction", "id", "moved", "name", "stopped", "total")

    def __init__(self, id: str, name: str, direction: Direction, total: int | None, began: float) -> None:  # noqa: A002
        self.id = id
        self.name = name
        self.direction = direction
        self.total = total
        self.began = began
        self.moved = 0
        """Bytes, until now."""
        self.stopped = False
        """Whether the operator has ended it: whoever moves it gives up."""


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A transfer as it stood when it was asked about."""

    id: str
    """What stops it."""
    direction: str
    name: str
    moved: int
    total: int | None
    seconds: float


class Transfers:
    """Those that are under way, and the bytes of all.

    Args:
        clock: for how long one has taken.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._running: dict[str, Transfer] = {}
        self._moved: dict[Direction, int] = dict.fromkeys(DIRECTIONS, 0)

    def __len__(self) -> int:
        return len(self._running)

    def begin(self, name: str, direction: Direction, total: int | None) -> Transfer:
        """Note one that is about to move; ``end`` must follow. The name may hold bytes that are not UTF-8."""
        began = self._clock.monotonic()
        transfer = Transfer(str(next(self._numbers)), written(name), direction, total, began)
        with self._lock:
            self._running[transfer.id] = transfer
        return transfer

    def end(self, transfer: Transfer) -> None:
        """Note that it moves no more, whole or not. May be called again."""
        with self._lock:
            if self._running.pop(transfer.id, None) is not None:
                self._moved[transfer.direction] += transfer.moved

    def running(self) -> tuple[Running, ...]:
        """Those under way, the oldest first."""
        now = self._clock.monotonic()
        with self._lock:
            transfers = list(self._running.values())
        return tuple(
            Running(
                id=each.id,
                direction=each.direction,
                name=each.name,
                moved=each.moved,
                total=each.total,
                seconds=round(now - each.began, 3),
            )
            for each in transfers
        )

    def stop(self, number: str) -> bool:
        """Have one given up, by its ``id``; False when it is not under way."""
        with self._lock:
            transfer = self._running.get(number)
        if transfer is not None:
            transfer.stopped = True
        return transfer is not None

    def bytes_moved(self) -> dict[Direction, int]:
        """Bytes since the start, those of transfers under way included."""
        with self._lock:
            moved = dict(self._moved)
            for each in self._running.values():
                moved[each.direction] += each.moved
        return moved
