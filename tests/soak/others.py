"""What everybody else does meanwhile: one request of each kind, each on time."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from standard_client import Standard, legacy, modern

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Daemon

PROMPT_S = 1.0
FAIR_LOAD = 2.0
"""Programs that want a processor, for each there is. Where there are more, everything takes its turn."""


def prompt_s() -> float:
    """How long an answer may take: a second, or as much longer as the machine has more to do than the test alone makes."""
    return PROMPT_S * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1) / FAIR_LOAD)


def complaints(daemon: Daemon) -> list[str]:
    """What the daemon has said on stderr, beside that somebody had a wrong token."""
    return [line for line in daemon.stderr.splitlines() if "unauthorized attempt" not in line]


class Others:
    """The slowest answers that others got."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.slowest: dict[str, float] = {}

    @property
    def worst_ms(self) -> float:
        """The slowest of all."""
        return round(max(self.slowest.values()) * 1000, 1)

    def ask(self) -> None:
        """Ask once for everything, as a newcomer; fails at the first that is refused or late."""
        prompt = prompt_s()
        client = self._daemon.client(timeout=prompt)
        mcp = Standard(self._daemon, timeout=prompt)
        self._timed("initialize", client.initialize)
        self._timed("ping", lambda: client.ask("ping").result)
        self._timed("tools/list", lambda: client.ask("tools/list").result)
        self._timed("read", lambda: client.call("read", path="/etc/hostname").result)
        self._timed("bash", lambda: client.call("bash", command="echo here").result)
        self._timed(
            "/mcp", lambda: mcp.send(*legacy("tools/call", {"name": "read", "arguments": {"path": "/"}})).result
        )
        self._timed("/mcp, 2026-07-28", lambda: mcp.send(*modern("tools/list")).result)
        self._timed("/xfer/", lambda: client.send("GET", "/xfer/"))
        self._timed("/healthz", lambda: client.send("GET", "/healthz"))
        self._timed("/metrics", lambda: client.send("GET", "/metrics"))
        self._timed("wrong token", lambda: self._daemon.client(token="wrong" * 9, timeout=prompt).ask("ping"))
        self._timed("DELETE", lambda: client.send("DELETE"))
        client.close()
        mcp.close()

    def _timed(self, name: str, ask: Callable[[], Any]) -> None:
        began = time.monotonic()
        ask()
        took = time.monotonic() - began
        assert took < prompt_s(), f"{name} took {took:.2f} s"
        self.slowest[name] = max(self.slowest.get(name, 0.0), took)
