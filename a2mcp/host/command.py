"""What is to be run. Owns the value, not the running: ``process`` starts it and ``runs`` looks after it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

DEFAULT_WAIT_S: Final = 50.0
"""Below the 60 s after which many clients give a call up."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One shell command and the conditions it runs under."""

    text: str
    cwd: Path
    env: dict[str, str] = {}
    """Set on top of what the daemon passes on."""
    stdin: bytes | None = None
    """``None`` is end-of-file at once."""
    wait_s: float = DEFAULT_WAIT_S
    """After this long the call is answered and the command goes on as a job."""
    timeout_s: float | None = None
    """After this long the command and all it started are ended."""

    @property
    def keeps_stdin(self) -> bool:
        """Whether standard input stays open for later writes instead of ending after ``stdin``."""
        return self.stdin is not None and self.wait_s == 0
