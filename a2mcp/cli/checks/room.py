"""How much the system lets the daemon have: disk, descriptors, processes, sizes. The running one, where one runs."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Final

from a2mcp.cli.checks.finding import Finding, Verdict
from a2mcp.host import procfs
from a2mcp.http.server.listen import descriptors_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2mcp.cli.checks.finding import Seen

LEAST_BYTES: Final = 16 * 1024 * 1024
"""Below this a disk counts as full: the next records may not fit."""
LEAST_FILES: Final = 1000
LEAST_MEMORY: Final = 512 * 1024 * 1024
_THREADS: Final = 256
"""More than the daemon ever has."""

_NAMES: Final = {
    resource.RLIMIT_NOFILE: b"Max open files",
    resource.RLIMIT_NPROC: b"Max processes",
    resource.RLIMIT_FSIZE: b"Max file size",
    resource.RLIMIT_AS: b"Max address space",
    resource.RLIMIT_DATA: b"Max data size",
}


def disk(seen: Seen) -> Iterator[Finding]:
    """Is there room for the log and for what commands print?"""
    limits, log = seen.limits, seen.settings.audit.bytes if seen.settings else 0
    homes = dict.fromkeys(_existing(path) for path in (seen.home.root, seen.home.audit.parent))
    for place in homes:
        found = os.statvfs(place)
        free = found.f_bavail * found.f_frsize
        mend = f"Free some space on the disk of {place}, or set A2MCP_HOME to another."
        if found.f_flag & os.ST_RDONLY:
            yield Finding("disk", Verdict.FAIL, f"the disk of {place} is read-only", "Set A2MCP_HOME to another.")
        elif free < LEAST_BYTES:
            fact = f"the disk of {place} has {_mib(free)} left: calls may leave no record"
            yield Finding("disk", Verdict.FAIL, fact, mend)
        elif found.f_files and found.f_favail < LEAST_FILES:
            fact = f"the disk of {place} takes only {found.f_favail} more files"
            yield Finding("disk", Verdict.FAIL if not found.f_favail else Verdict.WARN, fact, mend)
        elif place == _existing(seen.home.root) and free < (needed := limits.kept_bytes + log):
            fact = f"the disk of {place} has {_mib(free)} left, and the output of commands may take {_mib(needed)}"
            yield Finding("disk", Verdict.WARN, fact, f"{mend[:-1]}; or lower limits.kept_bytes.")
        else:
            yield Finding("disk", Verdict.OK, f"{_mib(free)} left on the disk of {place}")


def open_files(seen: Seen) -> Iterator[Finding]:
    """May it open as many files as it has connections and commands?"""
    _, hard = _limit(seen, resource.RLIMIT_NOFILE)
    needed = seen.limits.connections + descriptors_beside(seen.limits.jobs)
    if hard is None or hard >= needed:
        yield Finding("files", Verdict.OK, f"{needed} open files are allowed")
    else:
        raised = f"Raise it (`ulimit -Hn {needed}`, or LimitNOFILE= in the unit)"
        mend = f"{raised}, or lower limits.connections or limits.jobs."
        yield Finding("files", Verdict.WARN, f"{hard} open files are allowed, {needed} may be needed", mend)


def processes(seen: Seen) -> Iterator[Finding]:
    """May it start as many processes as commands may run? Root always may."""
    soft, _ = _limit(seen, resource.RLIMIT_NPROC)
    needed = seen.limits.jobs + _THREADS
    if soft is not None and soft < needed and os.geteuid():
        raised = f"Raise it (`ulimit -u {needed}`, or LimitNPROC= in the unit)"
        fact = f"{soft} processes of yours are allowed, {needed} may be needed"
        yield Finding("processes", Verdict.WARN, fact, f"{raised}, or lower limits.jobs.")


def sizes(seen: Seen) -> Iterator[Finding]:
    """May files and memory grow as far as they have to?"""
    size, _ = _limit(seen, resource.RLIMIT_FSIZE)
    if size is not None and size < (needed := max(seen.limits.job_bytes, LEAST_BYTES)):
        fact = f"a file may have {_mib(size)}, and {_mib(needed)} may be needed: records and output are cut off"
        yield Finding("sizes", Verdict.WARN, fact, "`ulimit -f unlimited`, or LimitFSIZE=infinity in the unit.")
    for number, option in ((resource.RLIMIT_AS, "v"), (resource.RLIMIT_DATA, "d")):
        memory, _ = _limit(seen, number)
        if memory is not None and memory < LEAST_MEMORY:
            name = _NAMES[number].decode().removeprefix("Max ")
            fact = f"the limit of {name} is {_mib(memory)}: calls fail for want of memory"
            yield Finding("sizes", Verdict.WARN, fact, f"`ulimit -{option} unlimited`, or none in the unit.")


def _limit(seen: Seen, number: int) -> tuple[int | None, int | None]:
    """Return the soft and hard limit of the daemon, or of one that would be started from here; None is unlimited."""
    if seen.status is not None and (found := procfs.limit(seen.status.pid, _NAMES[number])) is not None:
        return found
    soft, hard = resource.getrlimit(number)
    return (None if soft == resource.RLIM_INFINITY else soft), (None if hard == resource.RLIM_INFINITY else hard)


def _existing(path: Path) -> Path:
    return next(each for each in (path, *path.parents) if each.exists())


def _mib(size: int) -> str:
    return f"{size / 1024 / 1024:,.0f} MiB"
