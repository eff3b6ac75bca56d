"""Calls that are made beside the test, and daemons with the tools of ``serve_with_tools``."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import DEADLINE_S, Daemon

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = Path(__file__).with_name("serve_with_tools.py")
WITH_TOOLS = [sys.executable, str(SCRIPT)]


class Later:
    """Something that is done on a thread of its own; ``result`` waits for it."""

    def __init__(self, action: Callable[[], Any]) -> None:
        self._action = action
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._action()
        except Exception as error:  # noqa: BLE001  # Raised again where it is waited for.
            self._error = error

    @property
    def over(self) -> bool:
        """Whether it has ended, one way or the other."""
        return not self._thread.is_alive()

    def result(self) -> Any:
        """What it returned; raises what it raised."""
        self._thread.join(DEADLINE_S)
        assert self.over, "it did not end"
        if self._error is not None:
            raise self._error
        return self._value

    @property
    def failed(self) -> bool:
        """Whether it ended by raising."""
        self._thread.join(DEADLINE_S)
        return self._error is not None


def started(daemon: Daemon, tool: str) -> list[dict[str, Any]]:
    """The ``start`` records of a tool."""
    return [record for record in daemon.audit() if record["tool"] == tool and record["phase"] == "start"]


def ended(daemon: Daemon, tool: str) -> list[dict[str, Any]]:
    """The ``done`` records of a tool."""
    return [record for record in daemon.audit() if record["tool"] == tool and record["phase"] == "done"]


def unpaired(records: list[dict[str, Any]]) -> set[str]:
    """The ids of calls that have a ``start`` and no ``done``."""
    begun = {record["id"] for record in records if record["phase"] == "start"}
    return begun - {record["id"] for record in records if record["phase"] == "done"}
