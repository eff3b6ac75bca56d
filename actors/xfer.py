"""The xfer actor: the one that opens and closes the share, so that whatever happens at once happens in an order.

A thin shell: what a share is and what its end leaves on record is in ``a2mcp/xfer/owner.py``. What is to be shared was
opened by the call itself, in its own thread: a disk may take long. Where dufs serves, the share is up when dufs is.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, assert_never

import msgspec

from a2mcp.errors import A2mcpError, Internal
from a2mcp.tools import xfer as tool
from a2mcp.tools.result import PENDING, Pending, Result, text
from a2mcp.xfer.owner import Opened, Owner, Server, Stand, open_share
from actors import fetcher
from actors.kit import Actor
from actors.ref import Ask, Mailbox, Message, Ref

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from a2mcp.clock import Clock
    from a2mcp.obtain.programs import Found
    from a2mcp.tools.context import Ticket
    from a2mcp.xfer.dufs import Down, Dufs, Up

DUFS: Final = "dufs"

logger = logging.getLogger("a2mcp.xfer")


class Finish(Protocol):
    """Completes a call; may be called more than once for one call."""

    def __call__(self, ticket: Ticket, result: Result) -> None:
        """Complete it."""
        ...


class Serve(Message, frozen=True):
    """Share what a call has opened."""

    ticket: Ticket
    opened: Opened
    cancelled: Callable[[], bool]


class Status(Message, frozen=True):
    """Say what is shared."""

    ticket: Ticket


class StopSharing(Message, frozen=True):
    """Close the share, because a caller says so."""

    ticket: Ticket


class StopForOperator(Ask[bool], frozen=True):
    """Close the share, because the operator says so; whether there was one."""


class Expire(Message, frozen=True):
    """Close the share, if its time is over."""


class Obtained(Message, frozen=True):
    """Told by the fetcher."""

    serve: Serve
    outcome: Found | A2mcpError


class Told(Message, frozen=True):
    """Told by dufs."""

    serve: Serve
    event: Up | Down


Command = Serve | Status | StopSharing | StopForOperator | Expire | Obtained | Told


class Sharing(msgspec.Struct, frozen=True, kw_only=True):
    """What the actor works with. Outlives it: a restart leaves the share up."""

    owner: Owner
    stand: Stand
    origin: str
    """Our own address."""
    public: Callable[[], str | None]
    """Our address from elsewhere, while there is one."""
    clock: Clock
    finish: Finish
    me: Ref[Command]
    fetcher: Ref[fetcher.Fetch]
    starting: dict[int, Dufs] = msgspec.field(default_factory=dict)
    """Those that are not up yet, by the identity of what they are for."""


class Xfer(Actor[Command]):
    """Owns the share and its time."""

    MAILBOX: ClassVar[int] = 1024

    def __init__(self, mailbox: Mailbox, *, sharing: Sharing) -> None:
        super().__init__(mailbox)
        self._sharing = sharing

    def receive(self, message: Command) -> bool | None:
        """Take one step."""
        sharing = self._sharing
        match message:
            case Serve():
                self._completing(message, self._serve)
            case Obtained(serve=serve, outcome=outcome):
                self._completing(serve, partial(self._start, outcome=outcome))
            case Told(serve=serve, event=event):
                self._completing(serve, partial(self._told, event=event))
            case Status(ticket=ticket):
                self._answering(ticket, self._status)
            case StopSharing(ticket=ticket):
                self._answering(ticket, lambda: tool.stopped(sharing.owner.stop(ticket.session_id)))
            case StopForOperator():
                return sharing.owner.stop(None) is not None
            case Expire():
                sharing.owner.expire()
            case _:
                assert_never(message)
        return None

    def on_stop(self) -> None:
        """Close the share, and what would have become one."""
        self._sharing.owner.close()
        while self._sharing.starting:
            self._sharing.starting.popitem()[1].close()

    def _status(self) -> Result:
        sharing = self._sharing
        return tool.serving(sharing.stand.standing(), sharing.origin, sharing.public())

    def _answering(self, ticket: Ticket, make: Callable[[], Result]) -> None:
        """Complete a call with what is made for it; when that breaks, with the error."""
        try:
            result = make()
        except BaseException:
            self._sharing.finish(ticket, text(str(Internal()), is_error=True))
            raise
        self._sharing.finish(ticket, result)

    # --- a share comes up -----------------------------------------------------------------------------------------

    def _serve(self, serve: Serve) -> None:
        if self._sharing.stand.options().uses_dufs:
            fetcher.fetch(self._sharing.fetcher, DUFS, then=self._sharing.me, message=partial(Obtained, serve))
        else:
            self._put_up(serve, None)

    def _start(self, serve: Serve, outcome: Found | A2mcpError) -> None:
        from a2mcp.xfer.dufs import Dufs  # noqa: PLC0415  # Most daemons serve by themselves.

        if isinstance(outcome, A2mcpError):
            raise outcome
        me = self._sharing.me
        server = Dufs(
            outcome,
            serve.opened.share.path,
            tell=lambda event: me.insist(Told(serve, event)),
            clock=self._sharing.clock,
        )
        server.start()
        # What it tells is read by this thread, and so after this.
        self._sharing.starting[id(serve)] = server

    def _told(self, serve: Serve, event: Up | Down) -> None:
        from a2mcp.xfer.dufs import Up  # noqa: PLC0415  # As above.

        server = self._sharing.starting.pop(id(serve), None)
        if isinstance(event, Up):
            if server is not None:
                self._put_up(serve, server)
        elif server is not None:
            self._refuse(serve, event.reason)
        elif serve.opened is self._opened():
            logger.warning("[a2mcp] the file server has ended: %s", event.reason)

    def _opened(self) -> Opened | None:
        standing = self._sharing.stand.standing()
        return None if standing is None else standing.opened

    def _put_up(self, serve: Serve, server: Server | None) -> None:
        if serve.cancelled():
            serve.opened.share.close()
            if server is not None:
                server.close()
            return
        sharing = self._sharing
        standing, replaced = sharing.owner.share(serve.opened, serve.ticket.session_id, server)
        answer = tool.shared(standing, sharing.origin, sharing.public(), replaced=replaced)
        sharing.finish(serve.ticket, answer)

    def _refuse(self, serve: Serve, reason: str) -> None:
        serve.opened.share.close()
        self._sharing.finish(serve.ticket, text(reason, is_error=True))

    def _completing(self, serve: Serve, step: Callable[[Serve], None]) -> None:
        """Take a step with a call that wants to share; when it breaks, complete the call here."""
        try:
            step(serve)
        except A2mcpError as error:
            self._refuse(serve, str(error))
        except BaseException:
            self._refuse(serve, str(Internal()))
            raise


class Port:
    """The way to the actor for tools: an ``XferPort``.

    Args:
        ref: the actor.
        clock: for the time of a share.
    """

    def __init__(self, ref: Ref[Command], clock: Clock) -> None:
        self._ref = ref
        self._clock = clock

    def share(self, ticket: Ticket, path: Path, ttl_s: int, cancelled: Callable[[], bool]) -> Literal[Pending.PENDING]:
        """Open a path and have it shared.

        Raises:
            ToolError: it cannot be opened.
            Busy: too many calls wait already.
        """
        opened = open_share(path, ttl_s, self._clock)
        try:
            self._ref.tell(Serve(ticket, opened, cancelled))
        except A2mcpError:
            opened.share.close()
            raise
        return PENDING

    def status(self, ticket: Ticket) -> Literal[Pending.PENDING]:
        """Say what is shared."""
        self._ref.tell(Status(ticket))
        return PENDING

    def stop(self, ticket: Ticket) -> Literal[Pending.PENDING]:
        """Close the share."""
        self._ref.tell(StopSharing(ticket))
        return PENDING


def stop(xfer: Ref[Command]) -> bool:
    """Close the share for the operator; whether there was one. Waits for the end of what served it."""
    return xfer.ask(StopForOperator(), timeout=10)


def tend(xfer: Ref[Any], stand: Stand) -> None:
    """Have a share closed whose time is over. Called once a second by the loop."""
    if stand.due() and xfer.mailbox.empty():
        xfer.insist(Expire())
