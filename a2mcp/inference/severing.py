"""Cuts the connections that this process has to the places it is to be kept from: a tripwire stops new ones only.

Owns how an open connection is found. Best effort: a name whose addresses are not known within a second is not looked
for any more, and where the system does not list descriptors, nothing is cut.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from a2mcp.inference.destinations import Destinations, canonical
from a2mcp.inference.rows import PLACEHOLDER_HOST

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOKUP_S: Final = 1.0
_DESCRIPTORS: Final = Path("/dev/fd")


def located(places: Destinations, *, known: Destinations | None) -> Destinations:
    """Add the addresses that the names have now. Waits up to ``LOOKUP_S`` seconds for the resolver.

    Names that are guarded already are not looked up: nobody is connected there, and the wire would take it for a try.
    """
    found: set[str] = set()
    threads = [
        threading.Thread(target=_look_up, args=(name, found), name=f"lookup-{name}", daemon=True)
        for name in places.names() - {PLACEHOLDER_HOST} - (known.names() if known else frozenset())
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LOOKUP_S / len(threads))
    return Destinations(places.hosts | found, places.places)


def sever(places: Destinations) -> int:
    """Shut down every connection of this process to one of these; how many there were."""
    return sum(_shut(descriptor, places) for descriptor in _descriptors())


def _look_up(name: str, found: set[str]) -> None:
    with contextlib.suppress(OSError):
        found.update(filter(None, (canonical(entry[4][0]) for entry in socket.getaddrinfo(name, None))))


def _descriptors() -> Iterator[int]:
    try:
        names = os.listdir(_DESCRIPTORS)  # noqa: PTH208 - numbers are wanted, not paths
    except OSError:
        return
    yield from (int(name) for name in names if name.isdigit())


def _shut(descriptor: int, places: Destinations) -> bool:
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        with socket.socket(fileno=os.dup(descriptor)) as line:
            if line.family not in {socket.AF_INET, socket.AF_INET6} or not places.meant(*line.getpeername()[:2]):
                return False
            line.shutdown(socket.SHUT_RDWR)
    except OSError:  # It is gone, or listens, or never was connected.
        return False
    return True
