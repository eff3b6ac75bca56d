"""The tripwire: keeps this whole process from looking up, and from connecting to, the places that models are asked at.

It is an audit hook of the interpreter, so it sees every library and every bare socket of this process that goes through
Python's own; no library has to be known. It does not see other processes, nor code that has sockets of its own.

NOTE: an audit hook cannot be taken away again, and costs a little at everything that is audited, such as opening a
file. So there is one for the process, made when it is needed for the first time; disarmed, it looks at nothing.
"""

from __future__ import annotations

import errno
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.inference.destinations import Destinations

SENTINEL: Final = "a2mcp takeover: host inference is disabled in this mode"
"""The seed's sentence. Nothing that retries takes it for a fault that passes."""
PROBE: Final = "a2mcp.tripwire"

_LOOKUPS: Final = frozenset({"socket.getaddrinfo", "socket.gethostbyname"})
_SENDS: Final = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_WATCHED: Final = _LOOKUPS | _SENDS | {PROBE}


class Tripped(PermissionError):
    """Somebody in this process wanted to reach a place that it is kept from."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, SENTINEL)


class Tripwire:
    """One wire; armed with the places it guards.

    Args:
        tripped: is told of each time that somebody is held back; called on whatever thread that is.
    """

    def __init__(self, tripped: Callable[[], object]) -> None:
        self._tripped = tripped
        self.guarded: Destinations | None = None
        """The places it guards now; None while it is disarmed."""

    def arm(self, guarded: Destinations | None) -> Destinations | None:
        """Guard these places and no others, or none; those before.

        Raises:
            RuntimeError: the interpreter takes no hook.
        """
        if guarded is not None:
            _install()
        before, self.guarded = self.guarded, guarded
        _armed.discard(self)
        if guarded is not None:
            _armed.add(self)
        return before

    def look(self, event: str, args: tuple[Any, ...]) -> None:
        """Hold back what goes where it must not.

        Raises:
            Tripped: it does.
        """
        guarded = self.guarded
        if guarded is not None and guarded.meant(*_target(event, args)):
            self._tripped()
            raise Tripped


def _target(event: str, args: tuple[Any, ...]) -> tuple[object, object]:
    """The host and the port that an event is about; a socket's address is its last argument."""
    if event in _LOOKUPS:
        return args[0], args[1] if len(args) > 1 else None
    address = args[-1]
    # NOTE: an address of another family is a string, or a tuple that does not begin with a host.
    return (address[0], address[1]) if isinstance(address, tuple) and len(address) > 1 else (None, None)


# --- the hook: one for the process, for good ----------------------------------------------------------------------


class _Probe:
    """Sees whether the hook sees anything."""

    def __init__(self) -> None:
        self.seen = False

    def look(self, event: str, _args: tuple[Any, ...]) -> None:
        self.seen = self.seen or event == PROBE


_armed: Final[set[Tripwire | _Probe]] = set()
_installed: Final[list[_Probe]] = []
_installing: Final = threading.Lock()


def _hook(event: str, args: tuple[Any, ...]) -> None:
    # PERF: this runs at every audited event; nothing stands before the one test.
    if _armed and event in _WATCHED:
        for wire in tuple(_armed):
            wire.look(event, args)


def _install() -> None:
    with _installing:
        if _installed:
            return
        probe = _Probe()
        _armed.add(probe)
        try:
            sys.addaudithook(_hook)
            sys.audit(PROBE)
        finally:
            _armed.discard(probe)
        # NOTE: a hook that was there before may keep ours out, and the interpreter says nothing of it.
        if not probe.seen:
            raise RuntimeError("the interpreter takes no audit hook")
        _installed.append(probe)
