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
from typing import TYPE_CHECKING, Final

from a2mcp.host import marks, procfs
from a2mcp.host.groups import Identity, identities

if TYPE_CHECKING:
    from a2mcp.host.process import Child
    from a2mcp.host.procfs import Look

_READ: Final = 1 << 16
_BREATH_S: Final = 0.005
_UNDECIDED_S: Final = 0.09
"""A process that is just being replaced by another program shows no environment: for so long it may be anybody's."""

logger = logging.getLogger("a2mcp.jobs")


class _Adopted:
    """Somebody who became our child."""

    __slots__ = ("came", "mark", "tended")

    def __init__(self, came: float) -> None:
        self.mark: str | None = None
        """Of the command it belongs to; None where that cannot be told."""
        self.came = came
        """The monotonic moment in which it was noticed."""
        self.tended = False


class Household:
    """Who was given to us.

    Raises:
        OSError: this kernel keeps no list of children.
    """

    follows = True

    def __init__(self) -> None:
        # Orphans go to the first thread of a process; commands are children of the thread that started them.
        self._list = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY | os.O_CLOEXEC)
        self._since = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        self._shells: dict[int, str] = {}
        self._adopted: dict[int, _Adopted] = {}
        self._of: dict[str, set[int]] = {}
        self._undecided: set[int] = set()

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
        return bool(self._undecided) or (mine is not None and any(map(self._lives, tuple(mine))))

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
        for pid, one in list(self._adopted.items()):
            # A child that somebody here started, in a thread that has ended, comes this way as well. Whoever started it
            # may still ask for its exit code, so the dead that bear no mark have to have been here a while.
            if one.mark is not None or one.tended:
                self._lives(pid)
            one.tended = True
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
                self._adopted[pid] = _Adopted(time.monotonic())
                self._undecided.add(pid)
        for pid in tuple(self._undecided):
            self._decide(pid)

    def _read(self) -> bytes:
        said = piece = os.pread(self._list, _READ, 0)
        while piece:  # The kernel hands out a page at a time.
            piece = os.pread(self._list, _READ, len(said))
            said += piece
        return said

    def _decide(self, pid: int) -> None:
        """Find out whose it is."""
        one, seen = self._adopted[pid], procfs.look(pid)
        one.mark = None if seen is None else self._mark_of(pid, seen)
        if one.mark is not None:
            self._of.setdefault(one.mark, set()).add(pid)
        elif seen is not None and seen.runs:
            if time.monotonic() - one.came < _UNDECIDED_S:
                return
            said = "[a2mcp] warning: process %d (%s) belongs to no command that can be told; it ends with the daemon"
            logger.warning(said, pid, seen.name)
        self._undecided.discard(pid)

    def _mark_of(self, pid: int, seen: Look) -> str | None:
        """Tell whose it is: by its group or session, by its mark, or because it can be nobody else's."""
        mine = self._shells.get(seen.session) or self._shells.get(seen.group)
        return mine or marks.of(pid) or (self._only_shell_before(seen.started) if seen.runs else None)

    def _only_shell_before(self, moment: int) -> str | None:
        """A server that writes its title over its environment has no mark any more."""
        if len(self._shells) != 1:
            return None
        ((pid, mark),) = self._shells.items()
        shell = procfs.look(pid)
        return mark if shell is not None and shell.started <= moment else None

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
        mark = self._adopted.pop(pid).mark
        self._undecided.discard(pid)
        if mark is not None:
            self._of[mark].discard(pid)
            if not self._of[mark]:
                del self._of[mark]
