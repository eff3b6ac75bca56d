"""The program ``dufs`` as the server of one share: how it is started, when it is up, and its end.

Its process belongs to a keeper. The credentials are made here, live as long as the share, and go into the program's
environment: its arguments can be read by every user of the machine.
"""

from __future__ import annotations

import base64
import os
import secrets
import socket
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.masking import MASK, mask
from a2mcp.obtain.programs import described
from a2mcp.tunnel.keeper import Ended, Keeper, Limits, Named
from a2mcp.tunnel.providers import Launch
from a2mcp.xfer.proxy import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from a2mcp.clock import Clock
    from a2mcp.obtain.programs import Found
    from a2mcp.types import JsonObject

READY_S: Final = 10.0
TERM_S: Final = 2.0

_LISTENS: Final = "Listening on"
_SAID_LINES: Final = 20
_SAID: Final = 2000


class Up(msgspec.Struct, frozen=True):
    """It listens."""


class Down(msgspec.Struct, frozen=True):
    """It is gone, or was never there; told once and last. The reason is in its own words where it had any."""

    reason: str


class Dufs:
    """One run of dufs: a ``Server``.

    Args:
        program: where it is.
        path: what it serves.
        tell: told ``Up`` at most once and ``Down`` once, from another thread.
        clock: for the limits.
    """

    def __init__(self, program: Found, path: Path, *, tell: Callable[[Up | Down], None], clock: Clock) -> None:
        self._program = program
        port, self._password = _free_port(), secrets.token_urlsafe(32)
        secret = f"share:{self._password}"
        self._upstream = Upstream(port, "Basic " + base64.b64encode(secret.encode()).decode())
        self._tell = tell
        self._up = False
        self._said: list[str] = []
        launch = Launch(
            # With the prefix it writes every address so that it stays below our route.
            arguments=(
                "--bind", "127.0.0.1", "--port", str(port), "--path-prefix", "/xfer", "--allow-upload", os.fspath(path),
            ),
            environment={"DUFS_AUTH": f"{secret}@/:rw"},
            hostname_in=self._heard,
        )  # fmt: skip
        self._keeper = Keeper(program.path, launch, tell=self._told, clock=clock, limits=Limits(READY_S, TERM_S))

    @property
    def upstream(self) -> Upstream:
        """Where it listens, and how it is spoken to."""
        return self._upstream

    @property
    def installed(self) -> JsonObject | None:
        """What was fetched for this run."""
        return None if self._program.pin is None else described(self._program.pin)

    def start(self) -> None:
        """Start it; what comes of that is told."""
        self._keeper.start()

    def close(self) -> None:
        """Ask it to end, and wait until it has; it is killed when it does not."""
        self._keeper.stop()
        self._keeper.wait(TERM_S + 1)

    # --- the keeper's thread --------------------------------------------------------------------------------------

    def _heard(self, line: str) -> str | None:
        if _LISTENS in line:
            return line
        if len(self._said) < _SAID_LINES:
            self._said.append(line)
        return None

    def _told(self, event: Named | Ended) -> None:
        if isinstance(event, Named):
            self._up = True
            self._tell(Up())
        elif self._up or not self._said:
            self._tell(Down(event.reason))
        else:
            # It may say what it was given.
            said = "\n".join(self._said).replace(self._password, MASK)
            self._tell(Down(mask(said)[:_SAID]))


def _free_port() -> int:
    """Find a port that nobody has now; whoever takes it meanwhile makes dufs say so and end."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
