"""The processes of our commands that lost their parents, which Linux gives to us: whose they are, and their end.

The daemon is what the kernel calls a child subreaper: whoever starts a session, a group or a second fork of its own
stays below us, and becomes our child when its parent dies. So nothing is looked for among strangers, and asking whether
a command left something costs one read of a list that is mostly empty. Not for several threads, but for ``end_all``.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from a2mcp.host import marks, procfs
from a2mcp.host.identity import Identity, identities

if TYPE_CHECKING:
    from a2mcp.host.process import Child

LIST_OF_CHILDREN: Final = Path(f"/proc/self/task/{os.getpid()}/children")
"""Of the first thread."""
_READ: Final = 1 << 16
_BREATH_S: Final = 0.005
_WAITED_FOR: Final = 60
"""Looks at a dead child that bears no mark, about a second each, before it is taken for nobody's."""

logger = logging.getLogger("a2mcp.jobs")


class Subreaper:
    """Who was given to us.

    Raises:
        OSError: this kernel keeps no list of children.
    """

    follows = True

    def __init__(self) -> None:
        # Orphans go to the first thread of a process; commands are children of the thread that started them.
        self._list = os.open(LIST_OF_CHILDREN, os.O_RDONLY | os.O_CLOEXEC)
        self._since = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        self._shells: dict[int, int] = {}
        """Of the commands that run: whose mark is on what they left, should that have none of its own."""
        self._adopted: dict[int, int | None] = {}
        """Who became our child, with the mark of its command."""
        self._of: dict[int, set[int]] = {}
        self._unmarked: dict[int, int] = {}
        """Those of them that nothing is known of, with how often they were looked at."""

    def began(self, child: Child) -> None:
        """Take note that this command runs."""
        self._shells[child.pid] = child.mark

    def over(self, child: Child) -> None:
        """Forget a command, all of which has ended."""
        # Once it was reaped, its number may be another's.
        if self._shells.get(child.pid) == child.mark:
            del self._shells[child.pid]

    def remains(self, child: Child) -> bool:
        """Whether anything that a command started still runs, its shell having ended.

        Whoever lives has an ancestor who lost its parent, and that one is on our list. PERF: asked at each end.
        """
        self._notice()
        mine = self._of.get(child.mark)
        return mine is not None and any(map(self._lives, tuple(mine)))

    def members(self, child: Child) -> list[Identity]:
        """Identify everybody who runs for a command."""
        self._notice()
        roots = [*self._of.get(child.mark, ())]
        if not child.reaped:
            roots.append(child.pid)
        family = dict.fromkeys(roots)
        for root in roots:
            family.update(dict.fromkeys(procfs.descendants(root)))
        return identities(family)

    def tend(self) -> bool:
        """Reap the dead among those who came to us; whether there are any who live."""
        self._notice()
        for pid, mark in list(self._adopted.items()):
            if mark is not None:
                self._lives(pid)
        # A child that somebody here has started, in a thread that has ended, comes this way as well, and whoever
        # started it may still ask for its exit code.
        for pid, looks in list(self._unmarked.items()):
            self._unmarked[pid] = looks + 1
            if looks >= _WAITED_FOR:
                self._lives(pid)
        return bool(self._adopted)

    def end_all(self, seconds: float) -> list[Identity]:
        """Kill everybody who was started since the beginning; who is left after so many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            below = identities(procfs.descendants(os.getpid()))
            left = [one for one in below if one.started >= self._since]
            if not left or time.monotonic() > deadline:
                return left
            for one in left:
                one.send(signal.SIGKILL)
            time.sleep(_BREATH_S)

    def _notice(self) -> None:
        """Take note of who has come since."""
        listed = self._read()
        if not listed:
            return
        for pid in map(int, listed.split()):
            if pid not in self._adopted and pid not in self._shells:
                self._adopt(pid)

    def _read(self) -> bytes:
        said = piece = os.pread(self._list, _READ, 0)
        while piece:  # The kernel hands out a page at a time.
            piece = os.pread(self._list, _READ, len(said))
            said += piece
        return said

    def _adopt(self, pid: int) -> None:
        mark = marks.of(pid)
        if mark is None or not marks.is_of(marks.helper(), mark):
            mark = self._mark_by_session(pid)
        self._adopted[pid] = mark
        if mark is not None:
            self._of.setdefault(mark, set()).add(pid)
            return
        self._unmarked[pid] = 0
        for one in identities([pid]):
            said = "[a2mcp] warning: process %d (%s) belongs to no command that can be told; it ends with the daemon"
            logger.warning(said, one.pid, one.name)

    def _mark_by_session(self, pid: int) -> int | None:
        """Tell whose a process is that has set the limit for itself which is our mark."""
        seen = procfs.look(pid)
        return None if seen is None else self._shells.get(seen.session) or self._shells.get(seen.group)

    def _lives(self, pid: int) -> bool:
        """Whether somebody who was given to us runs; reaped when not."""
        try:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG) is None:
                return True
        except ChildProcessError:
            pass
        self._forget(pid)
        return False

    def _forget(self, pid: int) -> None:
        mark = self._adopted.pop(pid)
        self._unmarked.pop(pid, None)
        if mark is not None:
            self._of[mark].discard(pid)
            if not self._of[mark]:
                del self._of[mark]
