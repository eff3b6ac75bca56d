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

from a2mcp.inference.destinations import Destinations, canonical, is_name
from a2mcp.inference.rows import PLACEHOLDER_HOST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOOKUP_S: Final = 1.0
_DESCRIPTORS: Final = Path("/dev/fd")


def located(ends: Iterable[tuple[str, int]], *, known: Destinations | None) -> Destinations:
    """The same places by the addresses that their names have now. Waits up to ``LOOKUP_S`` seconds for the resolver.

    Names that are guarded already are not looked up: nobody is connected there, and the wire would take it for a try.
    """
    found = {end for end in ends if not is_name(end[0])}
    threads = [
        threading.Thread(target=_look_up, args=(end, found), name=f"lookup-{end[0]}", daemon=True)
        for end in ends
        if end not in found and end[0] != PLACEHOLDER_HOST and not (known and known.meant(*end))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LOOKUP_S / len(threads))
    # NOTE: only with the port: a caller of ours may be on the machine that a provider is on.
    return Destinations(places=frozenset(found))


def sever(places: Destinations) -> int:
    """Shut down every connection of this process to one of these; how many there were."""
    return sum(_shut(descriptor, places) for descriptor in _descriptors())


def _look_up(end: tuple[str, int], found: set[tuple[str, int]]) -> None:
    name, port = end
    with contextlib.suppress(OSError):
        for entry in socket.getaddrinfo(name, port):
            found.add((canonical(entry[4][0]) or "", port))


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
