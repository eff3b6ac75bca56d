"""The daemon's threads share one heap."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness import Daemon

_RESERVED = 64 * 1024 * 1024
"""What glibc sets aside for a heap beside the main one, at a multiple of it."""


def further_heaps(maps: str) -> int:
    """How many heaps beside the main one a process has."""
    found = 0
    for line in maps.splitlines():
        begin, end = (int(edge, 16) for edge in line.split()[0].split("-"))
        following = next((each for each in maps.splitlines() if each.startswith(f"{end:x}-")), "")
        rest = 0 if not following else int(following.split()[0].split("-")[1], 16) - end
        found += begin % _RESERVED == 0 and end - begin + rest == _RESERVED
    return found


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have one heap, or no such switch")
def test_calls_on_many_threads_make_no_further_heap(daemon: Daemon) -> None:
    """Ours: each was memory that never came back, for threads of which one runs at a time."""
    client = daemon.session()
    client.call("read", path="/etc/hostname")
    client.call("bash", command="true")

    assert further_heaps(Path(f"/proc/{daemon.process.pid}/maps").read_text()) == 0
