"""A SQLite file of ours: opened so that a killed process leaves it readable, set aside when it is not one of ours.

Owns how such a file is opened. Does not know what is in it. SQLite is imported by the first who opens one, and not at
the start of the daemon.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

BUSY_MS: Final = 1000
"""How long a reader in another process, such as somebody's ``sqlite3``, may hold up a write."""
CACHE_KIB: Final = 256

_SETUP: Final = f"""
PRAGMA busy_timeout = {BUSY_MS};
PRAGMA cache_size = -{CACHE_KIB};
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA journal_size_limit = 4194304;
"""


def connect(path: Path, tables: str, version: int) -> sqlite3.Connection:
    """Open the file, making it and its tables where they are not there.

    Args:
        path: the file; its folder must exist.
        tables: the statements that make the tables.
        version: of their form.

    Raises:
        sqlite3.DatabaseError: it is no database of this version.
        sqlite3.Error, OSError: it cannot be opened.
    """
    import sqlite3  # noqa: PLC0415 - as the module says

    # SECURITY: 0600 from birth; SQLite gives its side files the mode of the database.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    # The owner is one thread at a time, but after a restart of its actor another one.
    database = sqlite3.connect(path, check_same_thread=False)
    try:
        if one(database, "PRAGMA user_version") not in (0, version):
            raise sqlite3.DatabaseError("made by another version")  # noqa: TRY301 - ends like any unreadable file
        database.executescript(f"{_SETUP}{tables}\nPRAGMA user_version = {version};")
    except BaseException:
        database.close()
        raise
    return database


def is_broken(path: Path, version: int) -> bool:
    """Whether a file is no sound database of this version; False where that cannot be told now.

    SQLite says of a page that the disk did not give that the file is malformed, so its word alone is not enough.
    """
    import sqlite3  # noqa: PLC0415 - as the module says

    try:
        with contextlib.closing(sqlite3.connect(path)) as database:
            ours = one(database, "PRAGMA user_version") in (0, version)
            return not ours or one(database, "PRAGMA quick_check(1)") != "ok"
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:
        return True


def set_aside(path: Path) -> None:
    """Move a file that is no database of ours out of the way, with what belongs to it: it is not ours to delete."""
    aside = path.with_name(path.name + ".unreadable")
    with contextlib.suppress(OSError):
        path.replace(aside)
        path.with_name(path.name + "-shm").unlink(missing_ok=True)
        path.with_name(path.name + "-wal").replace(aside.with_name(aside.name + "-wal"))


def one(database: sqlite3.Connection, query: str, *values: Any) -> Any:
    """The first value of the first row; None where there is none."""
    row = database.execute(query, values).fetchone()
    return None if row is None else row[0]
