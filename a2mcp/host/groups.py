"""Who a process number belongs to: telling our processes from strangers that came to the same number later.

Reads ``/proc``; where there is none nothing can be told, and so nothing is signalled.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from pathlib import Path
from typing import Final

import msgspec

_PROC: Final = Path("/proc")
_GONE: Final = frozenset("ZXx")


class Identity(msgspec.Struct, frozen=True):
    """A process and not only its number: with the start time and the boot it is unique."""

    pid: int
    started: int
    """Clock ticks from boot to start."""
    boot: str

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """Identify a process, or ``None`` where that cannot be told."""
        seen = _look(pid)
        return None if seen is None else cls(pid, seen.started, boot_id())

    def alive(self) -> bool:
        """Whether exactly this process still runs."""
        seen = _look(self.pid)
        return seen is not None and seen.started == self.started and seen.state not in _GONE and boot_id() == self.boot

    def signal_group(self, number: signal.Signals) -> None:
        """Signal every process of the group this one leads, if it still does.

        SECURITY: each is held by a descriptor before it is looked at, so the one signalled is the one looked at.
        """
        if not self.alive() or not hasattr(os, "pidfd_open"):
            return
        for pid in members(self.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                handle = os.pidfd_open(pid)
                try:
                    seen = _look(pid)
                    if seen is not None and seen.group == self.pid:
                        signal.pidfd_send_signal(handle, number)
                finally:
                    os.close(handle)


def members(group: int) -> list[int]:
    """List the running processes of a group."""
    pids = (int(name) for name in _names() if name.isdecimal())
    looks = ((pid, _look(pid)) for pid in pids)
    return [pid for pid, seen in looks if seen is not None and seen.group == group and seen.state not in _GONE]


def inhabited(group: int) -> bool:
    """Whether a process of the group still runs; the dead who wait to be reaped do not count."""
    return bool(members(group))


@functools.cache
def boot_id() -> str:
    """Name the time since the machine was started; empty where the system gives it no name."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


class _Look(msgspec.Struct, frozen=True):
    state: str
    group: int
    started: int


def _names() -> list[str]:
    try:
        return [entry.name for entry in os.scandir(_PROC)]
    except OSError:
        return []


def _look(pid: int) -> _Look | None:
    try:
        line = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The second field is the program's name in parentheses and may hold anything, parentheses too.
    fields = line[line.rindex(b")") + 2 :].split()
    return _Look(fields[0].decode(), int(fields[2]), int(fields[19]))
