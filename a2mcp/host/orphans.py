"""What a killed daemon of this home left running: found by its mark, and kept as jobs until somebody ends them.

Nothing is signalled that does not bear the mark of this home, or is not written down with its start time. What ran for
a caller is only listed, because it may be wanted; what ran for the daemon alone is killed.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.clock import iso
from a2mcp.host import marks, procfs
from a2mcp.host.identity import Identity, identities, members
from a2mcp.host.joblog import MOST_SURVIVORS, Record, State
from a2mcp.masking import mask

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.clock import Clock
    from a2mcp.host.joblog import JobLog

_SHOWN: Final = 200
"""Characters of a command that nobody has written down; enough to recognise it by."""

logger = logging.getLogger("a2mcp.jobs")


def search(root: Path) -> dict[int, list[Identity]]:
    """Find what daemons of this home have started, but for this process and whoever it did, by mark.

    Looks at every process.
    """
    try:
        home = marks.home_of(root)
    except OSError:
        return {}
    before = procfs.descendants(os.getpid())
    marked = [(pid, mark) for pid in procfs.pids() if (mark := marks.of(pid)) is not None and marks.is_of(home, mark)]
    # SECURITY: looked at again, or what another thread has started meanwhile would be taken for an orphan, and killed.
    mine = {os.getpid(), *before, *procfs.descendants(os.getpid())}
    found: dict[int, list[int]] = {}
    for pid, mark in marked:
        if pid not in mine:
            found.setdefault(mark, []).append(pid)
    return {mark: living for mark, pids in found.items() if (living := identities(pids))}


class Orphans:
    """The orphans of one home. Not for several threads.

    Args:
        log: the folder of the jobs, in the home.
        clock: for when they were started.
    """

    def __init__(self, log: JobLog, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._known: dict[int, list[Identity]] | None = None
        """By mark, as of the last look; None before the first."""

    def count(self) -> int:
        """How many commands of a killed daemon still run, as far as was seen."""
        return sum(any(one.alive() for one in who) for who in (self._known or {}).values())

    def look(self) -> None:
        """Find them, make those jobs that are none, and correct what is written of the others.

        PERF: looked for once, and later only while there was somebody.
        """
        if self._known is not None and not self._known:
            return
        found = search(self._log.folder.parent)
        for mark in [mark for mark in found if marks.is_helper(mark)]:
            for one in found.pop(mark):
                one.send(signal.SIGKILL)
        stored = {record.mark: record for record in self._log.all() if record.mark} if found else {}
        for mark, who in found.items():
            self._keep(stored.get(mark) or self._job_of(mark, who), who)
        if self._known is None and found:
            said = "[a2mcp] warning: a daemon that was killed left %d command(s) running: see `a2mcp jobs`"
            logger.warning(said, len(found))
        self._known = found

    def of(self, record: Record) -> list[Identity]:
        """Identify everybody who runs for an orphan."""
        known = [one for one in record.processes if one.alive()]
        marked = search(self._log.folder.parent).get(record.mark, []) if record.mark else []
        grouped = members(record.pid) if record.identity in known else []
        roots = {one.pid: one for one in (*known, *marked, *grouped)}
        below = {pid for root in roots for pid in procfs.descendants(root)} - roots.keys()
        return [*roots.values(), *identities(below)]

    def _keep(self, record: Record, who: list[Identity]) -> None:
        kept = msgspec.structs.replace(record, state=State.ORPHAN, survivors=tuple(who[:MOST_SURVIVORS]))
        if kept != record:
            self._log.save(kept)

    def _job_of(self, mark: int, who: list[Identity]) -> Record:
        """Make a job of a command that was none: its daemon was killed while its call still waited for it."""
        eldest = min(who, key=lambda one: one.started)
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - eldest.started / os.sysconf("SC_CLK_TCK")
        return Record(
            id=self._log.create(),
            command=mask(procfs.command_line(eldest.pid) or eldest.name)[:_SHOWN],
            cwd=procfs.folder(eldest.pid),
            pid=eldest.pid,
            identity=eldest,
            started_at=iso(self._clock.now() - timedelta(seconds=age_s)),
            duration_s=age_s,
            state=State.RUNNING,
            mark=mark,
        )
