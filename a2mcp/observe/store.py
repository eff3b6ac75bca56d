"""The events on disk: a bounded SQLite file that a killed process leaves readable.

Owns the file. A row holds a group of events as lines of JSON, because one row a group costs a tenth of one row an event
and nothing is searched by anything but its number. Nothing here raises for what the disk does: events pause, calls go
on. Not thread-safe; one owner. The file is opened at the first event and not at the start of the daemon.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from a2mcp import database as databases
from a2mcp.observe import event as events
from a2mcp.observe.event import ALL, Event, Wanted

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from a2mcp.clock import Clock

KEEP: Final = 200_000
"""Events; about 50 MB."""
PAUSE_S: Final = 10.0
"""After a write that failed, before the next is tried."""
FORMAT: Final = 1

_TABLES: Final = "CREATE TABLE IF NOT EXISTS groups (last INTEGER PRIMARY KEY, lines BLOB NOT NULL);"

T = TypeVar("T")

logger = logging.getLogger("a2mcp.observe")


class Store:
    """The last ``keep`` events, by their number.

    Args:
        path: the file; its folder must exist.
        keep: how many events.
        clock: measures the pause after a failure.
    """

    def __init__(self, path: Path, *, clock: Clock, keep: int = KEEP) -> None:
        self._path = path
        self._keep = keep
        self._clock = clock
        self._database: sqlite3.Connection | None = None
        self._newest = 0
        self._again_at = float("-inf")
        self._pruned_at = 0
        self._failing = False
        self.failures = 0
        """Events that are not kept."""

    def append(self, group: Sequence[Event]) -> bool:
        """Keep a group of events, numbered in order; False when they are not kept."""
        kept = [event if event.diff is None else msgspec.structs.replace(event, diff=None) for event in group]
        done = bool(kept) and self._try(lambda database: self._insert(database, kept), False)
        self.failures += 0 if done else len(kept)
        return done

    def newest(self) -> int:
        """The number of the last event that is kept, as far as it is known; 0 where none is.

        Asked before each group: a file that could not be read at first may hold higher numbers than were given since.
        """
        if self._database is None:
            self._try(lambda _database: None, None)
        return self._newest

    def since(self, after: int, limit: int, wanted: Wanted = ALL) -> tuple[Event, ...]:
        """The wanted events after a number, oldest first, at most ``limit``; what is not there any more is a gap."""

        def read(database: sqlite3.Connection) -> tuple[Event, ...]:
            rows = database.execute("SELECT lines FROM groups WHERE last > ? ORDER BY last", (after,))
            found = (event for event in _events(rows) if event.sequence > after)
            return _first(limit, (event for event in events.with_gaps(found, after) if wanted.takes(event)))

        return self._try(read, ())

    def last(self, count: int, wanted: Wanted = ALL) -> tuple[Event, ...]:
        """The last ``count`` wanted events, oldest first."""

        def read(database: sqlite3.Connection) -> tuple[Event, ...]:
            rows = database.execute("SELECT lines FROM groups ORDER BY last DESC")
            found = (event for row in rows for event in reversed(events.decode_lines(row[0])) if wanted.takes(event))
            return _first(count, found)[::-1]

        return self._try(read, ())

    def close(self) -> None:
        """Let go of the file; opened anew when it is used again."""
        if self._database is not None:
            database, self._database = self._database, None
            database.close()

    def _insert(self, database: sqlite3.Connection, group: Sequence[Event]) -> bool:
        newest = group[-1].sequence
        with database:
            database.execute("INSERT OR REPLACE INTO groups VALUES (?, ?)", (newest, events.encode_lines(group)))
            # PERF: a hundredth too many is kept, so that not every group deletes.
            if newest - self._pruned_at > self._keep // 100:
                database.execute("DELETE FROM groups WHERE last <= ?", (newest - self._keep,))
                self._pruned_at = newest
        self._newest = newest
        self._failing = False
        return True

    def _try(self, work: Callable[[sqlite3.Connection], T], default: T) -> T:
        """Do what the disk may refuse; after a refusal nothing is tried for a while."""
        if self._clock.monotonic() < self._again_at:
            return default
        try:
            import sqlite3  # noqa: PLC0415 - not before there is something to keep
        except (ImportError, OSError) as cause:
            # Without a descriptor left nothing can be imported either; and not every Python comes with it.
            self._pause(cause)
            return default
        try:
            return work(self._opened())
        except (sqlite3.Error, OSError, msgspec.DecodeError) as cause:
            self._pause(cause)
            malformed = type(cause) is sqlite3.DatabaseError and databases.is_broken(self._path, FORMAT)
            if malformed or isinstance(cause, msgspec.DecodeError):
                databases.set_aside(self._path)
            return default

    def _pause(self, cause: Exception) -> None:
        self.close()
        self._again_at = self._clock.monotonic() + PAUSE_S
        if not self._failing:
            logger.warning("[a2mcp] warning: events are not kept for now: %s; calls go on", cause)
        self._failing = True

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = databases.connect(self._path, _TABLES, FORMAT)
            self._newest = databases.one(self._database, "SELECT max(last) FROM groups") or 0
        return self._database


def _events(rows: Any) -> Iterator[Event]:
    for (lines,) in rows:
        yield from events.decode_lines(lines)


def _first(count: int, found: Iterator[Event]) -> tuple[Event, ...]:
    return tuple(event for event, _ in zip(found, range(count), strict=False))
