"""One daemon per home: a lock that the kernel drops when its holder dies.

Owns the lock file. No pid is read to decide anything and nothing is signalled: a pid file can name a process that has
nothing to do with us.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Final

from a2mcp.config import endpoint as endpoints
from a2mcp.config.paths import private_folder
from a2mcp.errors import AlreadyServing, UnusableFile, remedy
from a2mcp.files import TEMP_PREFIX

if TYPE_CHECKING:
    from pathlib import Path

    from filelock import FileLock

    from a2mcp.config.paths import Home

PATIENCE_S: Final = 0.5
"""How long a start waits for the lock: a command that only looks holds it for a moment."""

_SURELY_LEFT_S: Final = 60
"""No write of ours takes so long: a temporary file of this age has lost its writer."""


class Instance:
    """The right to serve a home, held until ``release`` or the end of the process.

    The descriptor is not inherited, so a command that outlives the daemon does not hold the home.
    """

    def __init__(self, lock: FileLock, warnings: tuple[str, ...]) -> None:
        self._lock = lock
        self.warnings = warnings
        """What had to be tightened in the home."""

    def release(self) -> None:
        """Let the next daemon start. The lock file stays: removing it would let two daemons lock two files."""
        self._lock.release()


def claim(home: Home) -> Instance:
    """Become the one daemon of this home.

    Raises:
        AlreadyServing: another daemon is; the text says where it serves.
        UnusableFile: the home or the lock cannot be used or trusted.
    """
    warnings = private_folder(home.root)
    lock = _lock(home)
    if not _acquire(lock, home, timeout=PATIENCE_S):
        raise AlreadyServing(
            f"Another daemon serves {home.root}{_who(home)}.",
            hint="Stop it with `a2mcp stop`, or set A2MCP_HOME to another folder.",
        )
    _sweep(home.root, age_s=0)
    _sweep(home.config.parent, age_s=_SURELY_LEFT_S)
    return Instance(lock, tuple(warnings))


def is_served(home: Home) -> bool:
    """Tell whether a daemon holds this home.

    Raises:
        UnusableFile: the lock cannot be looked at.
    """
    if not home.lock.exists():
        return False
    lock = _lock(home)
    if not _acquire(lock, home, timeout=0):
        return True
    lock.release()
    return False


def _lock(home: Home) -> FileLock:
    import filelock  # noqa: PLC0415 - 20 ms that a command which only asks the daemon does not spend

    return filelock.FileLock(home.lock, mode=0o600, thread_local=False)


def _acquire(lock: FileLock, home: Home, *, timeout: float) -> bool:
    import filelock  # noqa: PLC0415 - as above

    try:
        if home.lock.is_symlink() or (home.lock.exists() and not home.lock.is_file()):
            raise UnusableFile(f"{home.lock} is not a regular file.", hint="Remove it and start again.")
        lock.acquire(timeout=timeout)
    except filelock.Timeout:
        return False
    except OSError as error:
        raise UnusableFile(f"{home.lock} cannot be locked: {error.strerror}.", hint=remedy(error)) from error
    return True


def _sweep(folder: Path, *, age_s: float) -> None:
    """Remove temporary files that a killed daemon left; they may hold a token.

    The home is under our lock. The folder of the settings may be anybody's, so there only what is old is taken.
    """
    with contextlib.suppress(OSError):
        for left in folder.glob(f"{TEMP_PREFIX}*.tmp"):
            found = left.lstat()
            if found.st_uid == os.geteuid() and time.time() - found.st_mtime >= age_s:
                left.unlink()


def _who(home: Home) -> str:
    endpoint = endpoints.read(home.endpoint)
    return f" at {endpoint.bridge_url} (pid {endpoint.pid}, since {endpoint.started_at})" if endpoint else ""
