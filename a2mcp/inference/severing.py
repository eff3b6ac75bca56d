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

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOOKUP_S: Final = 1.0
_DESCRIPTORS: Final = Path("/dev/fd")


def located(ends: Iterable[tuple[str, int]], *, known: Destinations | None) -> Destinations:
    """The same places by the addresses that their names have now. Waits up to ``LOOKUP_S`` seconds for the resolver.

    Only names are looked up that somebody may be connected to: some connection leads to the name's port. Those that are
    guarded already are not: nobody is connected there, and the wire would take it for a try.
    """
    ports = {peer[1] for _, peer in _connected()}
    found = {end for end in ends if not is_name(end[0])}
    threads = [
        threading.Thread(target=_look_up, args=(end, found), name=f"lookup-{end[0]}", daemon=True)
        for end in ends
        if end not in found and end[1] in ports and not (known and known.meant(*end))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LOOKUP_S / len(threads))
    # NOTE: only with the port: a caller of ours may be on the machine that a provider is on.
    return Destinations(places=frozenset(found))


def sever(places: Destinations) -> int:
    """Shut down every connection of this process to one of these; how many there were."""
    return sum(_shut(descriptor) for descriptor, peer in _connected() if places.meant(*peer))


def _look_up(end: tuple[str, int], found: set[tuple[str, int]]) -> None:
    name, port = end
    with contextlib.suppress(OSError):
        for entry in socket.getaddrinfo(name, port):
            found.add((canonical(entry[4][0]) or "", port))


def _connected() -> Iterator[tuple[int, tuple[str, int]]]:
    """The descriptors of connections, and where each leads."""
    try:
        names = os.listdir(_DESCRIPTORS)  # noqa: PTH208 - numbers are wanted, not paths
    except OSError:
        return
    for descriptor in (int(name) for name in names if name.isdigit()):
        with contextlib.suppress(OSError):  # It is gone by now, or listens, or never was connected.
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                with socket.socket(fileno=os.dup(descriptor)) as line:
                    if line.family in {socket.AF_INET, socket.AF_INET6}:
                        yield descriptor, line.getpeername()[:2]


def _shut(descriptor: int) -> bool:
    try:
        with socket.socket(fileno=os.dup(descriptor)) as line:
            line.shutdown(socket.SHUT_RDWR)
    except OSError:
        return False
    return True
