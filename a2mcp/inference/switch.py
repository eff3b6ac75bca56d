"""The switch of the host's own inference: what it is set to, what became of that, and how often it held.

Plain state, moved by one thread; ``facts`` may be read by any. It is never written down: a restart is back at the
operator's setting.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from a2mcp.errors import UnusableFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.inference.loader import Loader
    from a2mcp.inference.takeover import Plan, Takeover


class SwitchFacts(msgspec.Struct, frozen=True):
    """How the switch stands: the answer of ``/host-llm``."""

    enabled: bool = True
    """Whether this host may ask models."""
    denied: int = 0
    """Requests to models that were refused since the start of the process."""
    degraded: bool = False
    """Whether it is denied, but what came since could not be: of that, only the tripwire holds, as it was."""


class Refusals:
    """Counts what was refused, on whatever thread."""

    def __init__(self) -> None:
        # NOTE: one that the same thread may take twice: the tripwire is met even in what a collector cleans up.
        self._lock = threading.RLock()
        self.count = 0

    def add(self) -> None:
        """Count one."""
        with self._lock:
            self.count += 1


class Switch:
    """The switch.

    Args:
        takeover: makes what it switches, when it is denied for the first time.
        loader: is brought up to date before.
        refusals: counts.
        warn: is told what the operator should know.
    """

    def __init__(
        self, takeover: Callable[[], Takeover], loader: Loader, refusals: Refusals, warn: Callable[[str], object]
    ) -> None:
        self._make = takeover
        self._takeover: Takeover | None = None
        self._loader = loader
        self._refusals = refusals
        self._warn = warn
        self._degraded = False

    @property
    def facts(self) -> SwitchFacts:
        """How it stands."""
        return SwitchFacts(not self._on, self._refusals.count, self._degraded)

    @property
    def _on(self) -> bool:
        return self._takeover is not None and self._takeover.guarded is not None

    def set(self, *, enabled: bool) -> Plan | None:
        """Allow or deny; what is denied now. It is done anew where it is so already.

        Raises:
            CannotDeny: a provider is out of reach. What was denied before still is.
            Exception: something broke. All is as it was.
        """
        if enabled:
            if self._takeover is not None:
                self._takeover.restore()
            self._degraded = False
            return None
        self._refresh()
        return self._deny()

    def rebuilt(self) -> Plan | None:
        """Follow a session of the agent that was made anew: what is denied is denied in it, too; that, if anything.

        Raises:
            CannotDeny, Exception: as ``set``; the switch stays where it is, and is degraded.
        """
        self._refresh()
        return self._deny() if self._on else None

    def _deny(self) -> Plan:
        plan = None
        try:
            self._takeover = self._takeover or self._make()
            plan = self._takeover.arm()
        finally:
            # What was not armed still is not, and all is as it was; what was armed holds by its old wire alone.
            self._degraded = plan is None and self._on
        return plan

    def _refresh(self) -> None:
        """Look at the operator's file again; what is wrong in it must keep nobody from denying what is known."""
        try:
            warnings = self._loader.refresh()
        except UnusableFile as error:
            warnings = (f"the models are as they were: {error}",)
        for warning in warnings:
            self._warn(warning)
