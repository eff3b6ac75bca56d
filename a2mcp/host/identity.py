"""Who a process number belongs to: telling our processes from strangers that came to the same number later.

Where there is no ``/proc`` nothing can be told, and so nothing is signalled.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

import msgspec

from a2mcp.host import procfs

if TYPE_CHECKING:
    from collections.abc import Iterable


class Identity(msgspec.Struct, frozen=True):
    """A process and not only its number: with the start time and the boot it is unique."""

    pid: int
    started: int
    """Clock ticks from boot to start."""
    boot: str
    name: str = ""
    """Of the program, for people."""

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """Identify a process, or ``None`` where that cannot be told."""
        seen = procfs.look(pid)
        return None if seen is None else cls(pid, seen.started, procfs.boot_id(), seen.name)

    def alive(self) -> bool:
        """Whether exactly this process still runs."""
        seen = procfs.look(self.pid)
        return seen is not None and seen.started == self.started and seen.runs and procfs.boot_id() == self.boot

    def hold(self) -> int | None:
        """Open a descriptor that stays with exactly this process and is readable once it has ended, to be closed."""
        if not hasattr(os, "pidfd_open"):
            return None
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return None
        if self.alive():
            return handle
        os.close(handle)
        return None

    def send(self, *numbers: signal.Signals) -> None:
        """Signal exactly this process, if it still runs and we may.

        SECURITY: it is held by a descriptor before it is looked at, so the one signalled is the one looked at.
        """
        handle = self.hold()
        if handle is None:
            return
        try:
            for number in numbers:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def identities(pids: Iterable[int]) -> list[Identity]:
    """Identify those of these processes that run."""
    boot = procfs.boot_id()
    looks = ((pid, procfs.look(pid)) for pid in pids)
    return [Identity(pid, seen.started, boot, seen.name) for pid, seen in looks if seen is not None and seen.runs]


def members(group: int) -> list[Identity]:
    """Identify the running processes of a group; the dead who wait to be reaped do not count. Looks at everybody."""
    looks = ((pid, procfs.look(pid)) for pid in procfs.pids())
    return identities(pid for pid, seen in looks if seen is not None and seen.group == group)
