"""Telling somebody who waits for a command how far it is. Knows when, not how it is told."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from a2mcp.host.run import Run, Watcher
    from a2mcp.host.timers import Timers

PROGRESS_S: Final = 1.0
"""Between two reports."""


def admit(timers: Timers, run: Run, watcher: Watcher) -> None:
    """Add somebody who waits; one who wants to know is told, from now on until the answer."""
    run.watchers.append(watcher)
    _follow(timers, run, watcher)


def _follow(timers: Timers, run: Run, watcher: Watcher) -> None:
    if watcher.progress is not None:
        timers.after(PROGRESS_S, partial(_tell, timers, run, watcher))


def _tell(timers: Timers, run: Run, watcher: Watcher) -> None:
    if watcher.progress is not None and watcher in run.watchers:
        _follow(timers, run, watcher)
        watcher.progress(run.written, run.last_line())
