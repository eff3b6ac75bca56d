"""The mark in the environment of every process that a daemon starts: for which home, by which daemon, which command.

A process that leaves its group and its session still carries it, and so do those it starts. It is no secret and gives
no right. One that clears its environment, or writes over it, loses it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from typing import TYPE_CHECKING, Final

from a2mcp.host import procfs

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = b"BY_A2MCP"
_HELPER: Final = "helper"
_HASHED: Final = 12

_numbers = itertools.count(1)
_daemon = f"none.{os.urandom(4).hex()}"
"""The home and the daemon, as all our marks begin."""


def home_of(root: Path) -> str:
    """Name a home by its folder. Two machines or containers that show each other's processes may have equal paths."""
    found = root.stat()
    where = f"{found.st_dev}:{found.st_ino}:{root}"
    return hashlib.sha256(os.fsencode(where)).hexdigest()[:_HASHED]


def begin(root: Path) -> None:
    """Mark what is started from now on as this home's. To be called before anything is."""
    global _daemon  # noqa: PLW0603  # It mirrors a property of the process, of which there is one.
    _daemon = f"{home_of(root)}.{os.urandom(4).hex()}"


def fresh() -> str:
    """Make the mark of another command."""
    return f"{_daemon}.{next(_numbers)}"


def helper() -> str:
    """Give the mark of what we start for ourselves, such as a searcher."""
    return f"{_daemon}.{_HELPER}"


def is_helper(mark: str) -> bool:
    """Whether a process with this mark runs no command of a caller."""
    return mark.endswith(f".{_HELPER}")


def is_ours(mark: str) -> bool:
    """Whether this very daemon gave it."""
    return mark.startswith(f"{_daemon}.")


def of(pid: int) -> str | None:
    """Read the mark of a process; None where there is none, or we may not look."""
    found = procfs.variable(pid, NAME)
    return None if found is None else found.decode("ascii", "replace")
