"""Who belongs to a command beside its shell: what the daemon can know of them on this system, and so do to them.

``Subreaper`` knows all of it, ``ProcessGroups`` whoever stayed in the group of the command, ``NoProc`` no more than
whether somebody did. ``begin`` chooses for the process, once and before anything is started.
"""

from __future__ import annotations

import ctypes
import logging
import os
from typing import TYPE_CHECKING, Final, Protocol

from a2mcp.host import marks, process, procfs
from a2mcp.host.identity import Identity, members
from a2mcp.host.subreaper import LIST_OF_CHILDREN, Subreaper

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.host.process import Child

_PR_SET_CHILD_SUBREAPER: Final = 36
"""From ``linux/prctl.h``."""
_END_S: Final = 0.5
"""What those who are killed at the very end may take to go."""

logger = logging.getLogger("a2mcp.jobs")


class Descendants(Protocol):
    """What can be known of the processes that commands have started. Not for several threads."""

    follows: bool
    """Whether it sees who remains of a command, so that they can be looked after."""

    def began(self, child: Child) -> None:
        """Take note that this command runs."""
        ...

    def over(self, child: Child) -> None:
        """Forget a command, all of which has ended."""
        ...

    def remains(self, child: Child) -> bool:
        """Whether anything that a command started still runs, its shell having ended. May reap the shell."""
        ...

    def members(self, child: Child) -> list[Identity]:
        """Identify everybody who runs for a command, as far as this system lets us."""
        ...

    def tend(self) -> bool:
        """Reap the dead among those who came to us without being ours; whether there are any who live. Now and then."""
        ...

    def end_all(self, seconds: float) -> list[Identity]:
        """Kill everybody who was started since the beginning; who is left after so many seconds."""
        ...


class NoProc:
    """A system without ``/proc`` or descriptors of processes: no more is known than whether a group has members."""

    follows = False

    def began(self, child: Child) -> None:
        """Nothing is kept."""

    def over(self, child: Child) -> None:
        """Nothing was kept."""

    def remains(self, child: Child) -> bool:
        """Whether the group outlived its leader; asked while nobody else can have got its number."""
        child.reap()
        return child.left_something_running()

    def members(self, child: Child) -> list[Identity]:
        """Nobody can be told from a stranger with the same number."""
        del child
        return []

    def tend(self) -> bool:
        """Nobody comes to us."""
        return False

    def end_all(self, seconds: float) -> list[Identity]:
        """Nobody is known."""
        del seconds
        return []


class ProcessGroups(NoProc):
    """A system with ``/proc`` that gives us no orphans: who stayed in the group is known, who left it is not."""

    follows = True

    def remains(self, child: Child) -> bool:
        """Whether a process of the group runs; PERF: everybody is looked at only where the system says that one may."""
        return super().remains(child) and bool(members(child.pid))

    def members(self, child: Child) -> list[Identity]:
        """Identify the group."""
        return members(child.pid)


_here: Descendants | None = None
"""Set by ``begin``: whose orphans come to us is a property of the process, of which there is one."""


def begin(root: Path) -> None:
    """Mark whatever is started from now on, and have every orphan of it given to us where the system does that."""
    global _here  # noqa: PLW0603  # It mirrors a property of the process.
    marks.begin(root)
    _here = _settled()


def here() -> Descendants:
    """What can be known in this process; where nobody has begun, orphans go to whoever they go to."""
    return _here or ProcessGroups()


def lacking() -> str | None:
    """Say why not everybody can be seen here; None where everybody can be."""
    if _blind():
        return "there is no /proc, or there are no descriptors of processes (Linux 5.3)"
    if not LIST_OF_CHILDREN.exists():
        return "the kernel keeps no list of children"
    return None if marks.possible() else "real-time processor time (`ulimit -R`) is limited, or cannot be"


def _blind() -> bool:
    return procfs.look(os.getpid()) is None or not hasattr(os, "pidfd_open")


def end_all(seconds: float = _END_S) -> None:
    """Start nothing any more, kill everybody who was started and still runs, and name those who cannot be killed."""
    process.refuse()  # A thread may be about to start a command of a call that has ended.
    for one in here().end_all(seconds):
        logger.warning("[a2mcp] warning: process %d (%s) cannot be ended and outlives the daemon", one.pid, one.name)


def leave() -> None:
    """End this process at once, and nobody stays behind."""
    end_all(_END_S / 5)
    os._exit(1)


def _settled() -> Descendants:
    if _blind():
        return NoProc()
    if lacking() is not None:
        return ProcessGroups()
    try:
        subreaper = Subreaper()
        adopts: int = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError, TypeError):
        return ProcessGroups()
    return subreaper if adopts == 0 else ProcessGroups()
