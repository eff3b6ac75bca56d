"""The transcripts on disk: what agents did, which outlives the daemon.

Owns the file. An entry is what a reader is shown; a message is the same in the form of the agent's library, from which
a session goes on. Not thread-safe; one owner. The file is made by the first session and only read where it is there.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from a2mcp import database as databases
from a2mcp.clock import iso
from a2mcp.errors import CannotKeep
from a2mcp.inference.ledger import Spent
from a2mcp.inference.transcript import MAIN, Entry, Kind, Outcome, Session, State

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path
    from typing import TypeVar

    from a2mcp.clock import Clock
    from a2mcp.types import SessionId

    T = TypeVar("T")

KEEP: Final = 1000
"""Sessions; with one more, the one that has been still for longest is forgotten."""
FORMAT: Final = 1
INTERRUPTED: Final = "The daemon ended before this turn had."

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, updated TEXT NOT NULL, facts BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS entries (session TEXT, seq INTEGER, body BLOB NOT NULL, PRIMARY KEY (session, seq))
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (session TEXT, number INTEGER, body BLOB NOT NULL, PRIMARY KEY (session, number))
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS days (day TEXT PRIMARY KEY, spent BLOB NOT NULL);
"""

_encode = msgspec.json.Encoder().encode
_session = msgspec.json.Decoder(Session).decode
_entry = msgspec.json.Decoder(Entry).decode

logger = logging.getLogger("a2mcp.inference")


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept in one step."""

    session: Session
    entries: tuple[Entry, ...] = ()
    messages: tuple[bytes, ...] = ()
    """What the library's history has grown by."""
    spent: Spent = Spent()
    """What the session's sum has grown by."""


class Transcripts:
    """Every session, newest first.

    Args:
        path: the file; its folder must exist.
        clock: for the day on which something was spent.
        kept_bytes: what all of them may take. Over it, sessions are forgotten in which no turn goes on, and then the
            older half of what the host has told the session ``main``, again and again.
    """

    def __init__(self, path: Path, clock: Clock, *, kept_bytes: int) -> None:
        self._path = path
        self._clock = clock
        self._kept_bytes = kept_bytes
        self._database: sqlite3.Connection | None = None
        self._looked_over = False
        """Whether what a killed daemon left has been ended. Opened anew, the file may have turns that go on."""

    def keep(self, happened: Happened) -> None:
        """Keep what happened, all of it or nothing.

        Raises:
            CannotKeep: the disk does not take it.
        """

        def write(database: sqlite3.Connection) -> None:
            with database:
                self._write(database, happened)

        self._do(write)

    def spend(self, spent: Spent) -> None:
        """Count what was spent on no session.

        Raises:
            CannotKeep: the disk does not take it.
        """

        def write(database: sqlite3.Connection) -> None:
            with database:
                self._spend(database, spent)

        self._do(write)

    def session(self, session: SessionId) -> Session | None:
        """The facts of a session; None where there is none."""
        found = self._read(lambda database: databases.one(database, _FACTS, session), None)
        return None if found is None else _session(found)

    def sessions(self) -> list[Session]:
        """The facts of all sessions, the one that was busy last at the front."""
        query = "SELECT facts FROM sessions ORDER BY updated DESC, rowid DESC"
        return self._read(lambda database: [_session(row[0]) for row in database.execute(query)], [])

    def window(self, session: SessionId, after: int, limit: int) -> list[Entry]:
        """The entries of a session behind a number, oldest first."""
        query = "SELECT body FROM entries WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"
        values = (session, after, limit)
        return self._read(lambda database: [_entry(row[0]) for row in database.execute(query, values)], [])

    def history(self, session: SessionId) -> list[bytes]:
        """The messages of a session, oldest first."""
        query = "SELECT body FROM messages WHERE session = ? ORDER BY number"
        return self._read(lambda database: [row[0] for row in database.execute(query, (session,))], [])

    def spent(self, day: str) -> Spent:
        """What was spent on a day, as ``2026-11-30``."""
        found = self._read(lambda database: databases.one(database, _SPENT, day), None)
        return Spent() if found is None else msgspec.json.decode(found, type=Spent)

    def close(self) -> None:
        """Let go of the file; opened anew when it is used again."""
        if self._database is not None:
            database, self._database = self._database, None
            database.close()

    def _write(self, database: sqlite3.Connection, happened: Happened) -> None:
        session = happened.session
        new = databases.one(database, _FACTS, session.id) is None
        database.execute(
            "INSERT INTO sessions VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET updated = ?2, facts = ?3",
            (session.id, session.updated_at, _encode(session)),
        )
        database.executemany(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?)",
            [(session.id, entry.seq, _encode(entry)) for entry in happened.entries],
        )
        number = databases.one(database, "SELECT max(number) FROM messages WHERE session = ?", session.id) or 0
        database.executemany(
            "INSERT INTO messages VALUES (?, ?, ?)",
            [(session.id, number + place, body) for place, body in enumerate(happened.messages, 1)],
        )
        self._spend(database, happened.spent)
        if new:
            _forget_old(database)
        if _used_bytes(database) > self._kept_bytes:
            self._make_room(database, session.id)

    def _make_room(self, database: sqlite3.Connection, busy: SessionId) -> None:
        for facts in database.execute("SELECT facts FROM sessions ORDER BY updated").fetchall():
            session = _session(facts[0])
            if session.id not in (MAIN, busy) and session.state is State.IDLE:
                _forget(database, session.id)
                if _used_bytes(database) <= self._kept_bytes:
                    return
        while _used_bytes(database) > self._kept_bytes:
            database.execute(_FORGET_HALF, (MAIN,))
            if not database.execute("SELECT changes()").fetchone()[0]:
                return  # The rest is what goes on now, and what its provider needs to go on.

    def _spend(self, database: sqlite3.Connection, spent: Spent) -> None:
        if spent == Spent():
            return
        day = self._clock.now().date().isoformat()
        found = databases.one(database, _SPENT, day)
        before = Spent() if found is None else msgspec.json.decode(found, type=Spent)
        database.execute("INSERT OR REPLACE INTO days VALUES (?, ?)", (day, _encode(before + spent)))

    def _read(self, work: Callable[[sqlite3.Connection], T], default: T) -> T:
        """Read where there is something to read."""
        if self._database is None and not self._path.exists():
            return default
        return self._do(work)

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            import sqlite3  # noqa: PLC0415 - a daemon without agents has no use for it
        except (ImportError, OSError) as cause:
            raise _refused(cause) from cause
        try:
            return work(self._opened())
        except (sqlite3.Error, OSError, msgspec.DecodeError) as cause:
            self.close()
            malformed = type(cause) is sqlite3.DatabaseError and databases.is_broken(self._path, FORMAT)
            if malformed or isinstance(cause, msgspec.DecodeError):
                databases.set_aside(self._path)
            raise _refused(cause) from cause

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = databases.connect(self._path, _TABLES, FORMAT)
            if not self._looked_over:
                self._end_interrupted(self._database)
                self._looked_over = True
        return self._database

    def _end_interrupted(self, database: sqlite3.Connection) -> None:
        """Give the turns an end that a killed daemon left without one."""
        now = iso(self._clock.now())
        with database:
            for (facts,) in database.execute("SELECT facts FROM sessions").fetchall():
                session = _session(facts)
                if session.state is State.RUNNING:
                    self._write(database, _interrupted(session, now, INTERRUPTED))


_FACTS: Final = "SELECT facts FROM sessions WHERE id = ?"
_SPENT: Final = "SELECT spent FROM days WHERE day = ?"
# Never the newest entry: it may be of this very step.
_FORGET_HALF: Final = """
DELETE FROM entries WHERE session = ?1 AND seq <= (SELECT (min(seq) + max(seq) - 1) / 2 FROM entries WHERE session = ?1)
"""


def _interrupted(session: Session, now: str, why: str) -> Happened:
    """Make the end of a turn that was cut off."""
    seq = session.entries + 1
    ended = replace(session, state=State.IDLE, outcome=Outcome.INTERRUPTED, answer=why, entries=seq, updated_at=now)
    end = Entry(seq=seq, at=now, kind=Kind.END, text=f"{Outcome.INTERRUPTED}: {why}", is_error=True)
    return Happened(session=ended, entries=(end,))


def _forget_old(database: sqlite3.Connection) -> None:
    query = "SELECT id FROM sessions WHERE id != ? ORDER BY updated DESC LIMIT -1 OFFSET ?"
    for (session,) in database.execute(query, (MAIN, KEEP)).fetchall():
        _forget(database, session)


def _forget(database: sqlite3.Connection, session: SessionId) -> None:
    for table, column in (("sessions", "id"), ("entries", "session"), ("messages", "session")):
        database.execute(f"DELETE FROM {table} WHERE {column} = ?", (session,))  # noqa: S608 - our own names


def _used_bytes(database: sqlite3.Connection) -> int:
    """What is in the file; what was deleted leaves pages to be used again, and the file as long as it was."""
    pages = databases.one(database, "PRAGMA page_count") - databases.one(database, "PRAGMA freelist_count")
    return int(pages * databases.one(database, "PRAGMA page_size"))


def _refused(cause: Exception) -> CannotKeep:
    logger.warning("[a2mcp] warning: what agents do is not kept: %s", cause)
    return CannotKeep(f"What agents do cannot be kept: {cause}.", hint="The operator finds the file as agents.db.")
