"""What ``/proc`` says about processes. Everything is empty or None where there is no ``/proc``, or no such process.

Reads only. Owns the form of the files, knows nothing of whose process it is.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

PROC: Final = Path("/proc")
GONE: Final = frozenset("ZXx")
"""States of a process that runs no more: it only waits for its parent to look."""


class Look(msgspec.Struct, frozen=True):
    """How a process stands."""

    name: str
    """Of the program, 15 characters at most."""
    state: str
    group: int
    session: int
    started: int
    """Clock ticks from boot to start."""

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.state not in GONE


def look(pid: int) -> Look | None:
    """Look at a process."""
    try:
        line = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The second field is the program's name in parentheses and may hold anything, parentheses too.
    head, _, tail = line.rpartition(b")")
    fields = tail.split()
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    return Look(name, fields[0].decode(), int(fields[2]), int(fields[3]), int(fields[19]))


def pids() -> list[int]:
    """List the processes that there are."""
    try:
        return [int(entry.name) for entry in os.scandir(PROC) if entry.name.isdecimal()]
    except OSError:
        return []


def children(pid: int) -> Iterator[int]:
    """List the children of a process, those of each of its threads."""
    try:
        threads = os.listdir(PROC / str(pid) / "task")  # noqa: PTH208 - the names are all that is needed
    except OSError:
        return
    for thread in threads:
        try:
            listed = (PROC / str(pid) / "task" / thread / "children").read_bytes()
        except OSError:
            continue
        yield from map(int, listed.split())


def descendants(pid: int) -> list[int]:
    """List the children of a process, theirs, and so on; nobody twice, parents first."""
    found: dict[int, None] = {}
    waiting = [pid]
    while waiting:
        for child in children(waiting.pop()):
            if child not in found:
                found[child] = None
                waiting.append(child)
    return list(found)


def limit(pid: int, name: bytes) -> tuple[int | None, int | None] | None:
    """Read the soft and the hard resource limit of a process, which anybody may; one that is None is unlimited."""
    try:
        lines = (PROC / str(pid) / "limits").read_bytes().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(name):
            soft, hard = line[len(name) :].split()[:2]
            return int(soft) if soft.isdigit() else None, int(hard) if hard.isdigit() else None
    return None


def command_line(pid: int) -> str:
    """Tell what a process was started as, for a person to recognise it by."""
    try:
        said = (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ""
    return said.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")


def folder(pid: int) -> str:
    """Tell the working directory of a process."""
    try:
        return os.readlink(PROC / str(pid) / "cwd")  # noqa: PTH115 - a text that may say "(deleted)"
    except OSError:
        return ""


@functools.cache
def boot_id() -> str:
    """Name the time since the machine was started; empty where the system gives it no name."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
