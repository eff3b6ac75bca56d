"""The one share: what opens, replaces and closes it, and what everybody else may see of it.

``Owner`` is plain state, moved by one thread; each closing leaves exactly one record. ``Stand`` is what the edge reads
without asking anybody; it never shows a share that is past its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec

from a2mcp.host.paths import written
from a2mcp.xfer.transfers import Transfers

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from a2mcp.clock import Clock
    from a2mcp.types import JsonObject, SessionId
    from a2mcp.xfer.proxy import Upstream
    from a2mcp.xfer.settings import XferSettings
    from a2mcp.xfer.share import Share

    Record = Callable[[SessionId | None, JsonObject], None]
    Why = Literal["replaced", "ttl expired", "bridge stopped"]

ROUTE: Final = "/xfer/"


class Server(Protocol):
    """A program that serves a share in our stead."""

    @property
    def upstream(self) -> Upstream:
        """Where it listens, and how it is spoken to."""
        ...

    @property
    def installed(self) -> JsonObject | None:
        """What was fetched so that it could run; None when it was there."""
        ...

    def close(self) -> None:
        """Ask it to end and wait until it has."""
        ...


class Opened(msgspec.Struct, frozen=True, eq=False):
    """A share that nobody can reach yet."""

    share: Share
    started: datetime
    expires: datetime
    deadline: float
    """The same by the clock that nobody turns."""
    ttl_s: int


class Standing(msgspec.Struct, frozen=True, eq=False):
    """A share that is up, and what serves it."""

    opened: Opened
    server: Server | None
    """None: we serve it ourselves."""
    port: int
    """Where what serves it listens on the loopback interface."""

    @property
    def share(self) -> Share:
        """What is shared."""
        return self.opened.share


class Stand:
    """What the edge sees: a ``SharePort``.

    Args:
        clock: ends a share on the second, whenever its owner gets to close it.
        options: how files are shared.
    """

    def __init__(self, clock: Clock, options: XferSettings) -> None:
        self._clock = clock
        self._options = options
        self._now: Standing | None = None
        self.transfers = Transfers(clock)
        """What is being moved. Outlives each share, as the counts do."""

    def standing(self) -> Standing | None:
        """What is shared now, unless its time is over. A snapshot: it may be closed a moment later."""
        now = self._now
        return now if now is not None and self._clock.monotonic() < now.opened.deadline else None

    def current(self) -> Share | None:
        """The share that is up now."""
        standing = self.standing()
        return None if standing is None else standing.share

    def upstream(self) -> Upstream | None:
        """Where requests are passed on to, when another program serves the share that is up now."""
        standing = self.standing()
        return None if standing is None or standing.server is None else standing.server.upstream

    def options(self) -> XferSettings:
        """How files are shared."""
        return self._options

    def due(self) -> bool:
        """Whether the time of a share is over that is not closed yet."""
        now = self._now
        return now is not None and self._clock.monotonic() >= now.opened.deadline

    def replace(self, standing: Standing | None) -> Standing | None:
        """Show another share, or none; the one before. For the owner."""
        before, self._now = self._now, standing
        return before


class Owner:
    """Opens and closes the one share.

    Args:
        stand: kept up to date.
        clock: for its time.
        port: where we listen.
        record: writes an audit record.
    """

    def __init__(self, stand: Stand, clock: Clock, *, port: int, record: Record) -> None:
        self._stand = stand
        self._clock = clock
        self._port = port
        self._record = record

    def share(self, opened: Opened, sid: SessionId | None, server: Server | None) -> tuple[Standing, bool]:
        """Put up a share in the place of the one that is up; that one is closed.

        Returns:
            The share as it stands now, and whether another was replaced. One whose time was over does not count.
        """
        self.expire()
        port = self._port if server is None else server.upstream.port
        standing = Standing(opened, server, port)
        before = self._take_down(standing)
        if before is not None:
            self._record(sid, {"action": "close", **_facts(before), "why": "replaced"})
        self._record(sid, {"action": "share", **_facts(standing), "ttlSeconds": opened.ttl_s})
        return standing, before is not None

    def stop(self, sid: SessionId | None) -> Path | None:
        """Close the share because a caller says so; what was shared."""
        self.expire()
        before = self._take_down(None)
        if before is None:
            return None
        self._record(sid, {"action": "stop", **_facts(before)})
        return before.share.path

    def expire(self) -> None:
        """Close the share if its time is over."""
        if self._stand.due():
            self._close("ttl expired")

    def close(self) -> None:
        """Close the share because the daemon goes down."""
        self.expire()
        self._close("bridge stopped")

    def _close(self, why: Why) -> None:
        before = self._take_down(None)
        if before is not None:
            self._record(None, {"action": "close", **_facts(before), "why": why})

    def _take_down(self, following: Standing | None) -> Standing | None:
        """Show what follows; then see to the end of what was up, so that a record says what is so."""
        before = self._stand.replace(following)
        if before is not None:
            before.share.close()
            if before.server is not None:
                before.server.close()
        return before


def _facts(standing: Standing) -> JsonObject:
    return {"path": written(standing.share.path), "port": standing.port, "route": ROUTE}


def open_share(path: Path, ttl_s: int, clock: Clock) -> Opened:
    """Take hold of what is to be shared. May wait for the disk.

    Raises:
        ToolError: it cannot be served.
    """
    from datetime import timedelta  # noqa: PLC0415  # As below.

    from a2mcp.xfer.share import Share  # noqa: PLC0415  # Most daemons never share anything.

    started = clock.now()
    expires = started + timedelta(seconds=ttl_s)
    return Opened(Share.open(path), started, expires, clock.monotonic() + ttl_s, ttl_s)
