"""Processes that get away from whoever started them, each in its own way, and how a test sees what is left of them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

WAYS = {
    "in the group": "{} &",
    "holding nothing": "{} >/dev/null 2>&1 &",
    "orphaned": "({} >/dev/null 2>&1 &);",
    "own session": "setsid {} >/dev/null 2>&1 &",
    "own session, holding the output": "setsid {} &",
    "double fork": "(setsid bash -c '({} &)' >/dev/null 2>&1 </dev/null &);",
    "deaf": "setsid bash -c \"trap '' TERM HUP INT; exec {}\" >/dev/null 2>&1 &",
    "stopped": "setsid bash -c 'kill -STOP $$; exit' {} >/dev/null 2>&1 &",
    "without environment": "setsid env -i {} >/dev/null 2>&1 &",
}
"""Shell commands that leave a process behind; it takes the place of the braces."""

ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


def leaving(way: str, number: int) -> str:
    """A command that leaves a ``sleep`` behind, which is known by its number."""
    return way.format(f"sleep {number}") + " echo left"


def having(*words: str) -> list[int]:
    """The processes whose arguments have these words, in this order, at their end."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                argv = (folder / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                if argv[-len(words) :] == [word.encode() for word in words]:
                    found.append(int(folder.name))
    return found


def carrying(marker: str) -> list[int]:
    """The processes whose environment carries a mark; what a child of a child inherits too."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if marker.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
    return found
