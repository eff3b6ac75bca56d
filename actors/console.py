"""What the daemon says to whoever started it."""

from __future__ import annotations

import sys


def wait_line(calls: int, seconds: float) -> str:
    """Tell how long the end waits, and for what."""
    what, them = ("1 call", "it") if calls == 1 else (f"{calls} calls", "them")
    return f"waiting up to {seconds:g} s for {what}; a second signal (Ctrl-C) ends {them}"


def say(line: str) -> None:
    """Print the one line that everybody waits for; a closed stdout is no reason not to serve."""
    try:
        print(line, flush=True)  # noqa: T201  # The start-up line is the interface.
    except OSError:
        sys.stdout = None  # Python's own way to say that there is none.
