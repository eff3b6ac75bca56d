"""A notice on the desktop when a call waits for the operator, by the system's own ``notify-send``.

Owns what it says, and that calls which wait one after another raise one. Never waits for it.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from html import escape
from typing import TYPE_CHECKING, Final

from a2mcp.host.process import inherited, launch

if TYPE_CHECKING:
    from a2mcp.clock import Clock
    from a2mcp.observe.event import Event

PROGRAM: Final = "notify-send"
EVERY_S: Final = 3.0
"""Calls that wait one after another raise one notice in this time; the list has them all."""
SHOWN: Final = 200

logger = logging.getLogger("a2mcp.observe")


def program(path: str | None) -> str | None:
    """Find the program to call; None where there is none."""
    return shutil.which(PROGRAM, path=path)


class Desktop:
    """Raises notices."""

    def __init__(self, found: str, clock: Clock) -> None:
        self._program = found
        self._clock = clock
        self._last = float("-inf")
        self._running: list[subprocess.Popen[bytes]] = []

    def notify(self, event: Event) -> None:
        """Say that a call waits."""
        self._running = [process for process in self._running if process.poll() is None]
        now = self._clock.monotonic()
        if now - self._last < EVERY_S:
            return
        self._last = now
        who = f" for {event.client}" if event.client else ""
        said = f"{event.tool}{who}: {_text(event)}\nSee: a2mcp approvals"
        # SECURITY: much of this is a caller's. It is one argument behind "--", and what desktops read as markup is not.
        argv = [self._program, "--app-name=a2mcp", "--", "A call waits for you", escape(_visible(said), quote=False)]
        try:
            quiet = subprocess.DEVNULL
            self._running.append(launch(argv, stdin=quiet, stdout=quiet, stderr=quiet, cwd=os.sep, env=inherited()))
        except OSError as cause:
            logger.warning("[a2mcp] warning: no notice on the desktop: %s", cause)


def _text(event: Event) -> str:
    return bytes(event.args).decode("utf-8", "replace")[:SHOWN] if event.args else ""


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
