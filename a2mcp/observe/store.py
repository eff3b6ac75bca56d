"""The events on disk: a bounded SQLite file that a killed process leaves readable.

Owns the file. A row holds a group of events as lines of JSON, because one row a group costs a tenth of one row an event
and nothing is searched by anything but its number. Nothing here raises for what the disk does: events pause, calls go
on. Not thread-safe; one owner. SQLite is imported at the first event and not at the start of the daemon.
"""

from __future__ import annotations

import contextlib
import logging
import os
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

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
BUSY_MS: Final = 1000
"""How long a reader in another process, such as somebody's ``sqlite3``, may hold up a write."""
FORMAT: Final = 1
CACHE_KIB: Final = 256

_SETUP: Final = f"""
PRAGMA busy_timeout = {BUSY_MS};
PRAGMA cache_size = -{CACHE_KIB};
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA journal_size_limit = 4194304;
CREATE TABLE IF NOT EXISTS groups (last INTEGER PRIMARY KEY, lines BLOB NOT NULL);
PRAGMA user_version = {FORMAT};
"""

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
            if isinstance(cause, msgspec.DecodeError) or type(cause) is sqlite3.DatabaseError:
                self._set_aside()
            self._pause(cause)
            return default

    def _pause(self, cause: Exception) -> None:
        self.close()
        self._again_at = self._clock.monotonic() + PAUSE_S
        if not self._failing:
            logger.warning("[a2mcp] warning: events are not kept for now: %s; calls go on", cause)
        self._failing = True

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = self._open()
        return self._database

    def _open(self) -> sqlite3.Connection:
        import sqlite3  # noqa: PLC0415 - as above

        # SECURITY: 0600 from birth; SQLite gives its side files the mode of the database.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        # The owner is one thread at a time, but after a restart of its actor another one.
        database = sqlite3.connect(self._path, check_same_thread=False)
        try:
            if _one(database, "PRAGMA user_version") not in (0, FORMAT):
                raise sqlite3.DatabaseError("made by another version")  # noqa: TRY301 - ends like any unreadable file
            database.executescript(_SETUP)
            self._newest = _one(database, "SELECT max(last) FROM groups") or 0
        except BaseException:
            database.close()
            raise
        return database

    def _set_aside(self) -> None:
        """Move a file that is no store of ours out of the way: it is not ours to delete."""
        self.close()
        with contextlib.suppress(OSError):
            self._path.replace(self._path.with_name(self._path.name + ".unreadable"))
            for suffix in ("-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _one(database: sqlite3.Connection, query: str) -> Any:
    return database.execute(query).fetchone()[0]


def _events(rows: Any) -> Iterator[Event]:
    for (lines,) in rows:
        yield from events.decode_lines(lines)


def _first(count: int, found: Iterator[Event]) -> tuple[Event, ...]:
    return tuple(event for event, _ in zip(found, range(count), strict=False))
