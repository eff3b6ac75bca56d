"""Admission: a cap on what is in flight, an end to it while the daemon goes down, and a sweep for what got lost.

A table and no actor: it is written by the loop and by whoever completes a reply. Each change of it is one dict
operation, which the interpreter makes atomic; only the counts by principal have a lock.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from a2mcp.errors import Busy, Internal, Stopping
from a2mcp.protocol.exchange import Exchange
from a2mcp.tools.call import Call
from actors import executor

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.clock import Clock
    from a2mcp.protocol.exchange import Reply
    from a2mcp.protocol.response import Response
    from actors.doors import Room
    from actors.ref import Ref

RESERVE: Final = 1024
"""Requests let in beyond the cap on calls, so that a full house still answers ``ping`` and ends sessions."""
LOST_AFTER_S: Final = 30.0
"""A request this old that no actor knows has been lost."""

Principal = tuple[bool, str | None]
"""Who calls: whether that is a session of the bridge, and its id; or what a client of ``/mcp`` says its name is."""

logger = logging.getLogger("a2mcp.front")


def principal_of(exchange: Exchange) -> Principal:
    """Who calls. There is one token, so a name is taken as it is given; clients without one are one principal."""
    if exchange.dialect.sessions:
        return True, exchange.session_id
    return False, exchange.caller.client


class Pending(msgspec.Struct):
    """A request that is not answered yet."""

    exchange: Exchange
    since: float
    call: Call | None = None
    principal: Principal = (False, None)
    """Whose call it is."""
    ended: float | None = None
    """When a sweep first found the call ended and its reply not sent."""


class _Tracked:
    """A reply that takes itself off the list when it is completed."""

    __slots__ = ("_leave", "_reply")

    def __init__(self, reply: Reply, leave: Callable[[int], None]) -> None:
        self._reply = reply
        self._leave = leave

    def complete(self, response: Response) -> bool:
        # First: whoever has its answer finds the slot free that it had.
        self._leave(id(self))
        return self._reply.complete(response)

    def begin_stream(self) -> bool:
        return self._reply.begin_stream()

    def send(self, message: bytes) -> bool:
        return self._reply.send(message)

    def tend(self, now: float) -> None:
        self._reply.tend(now)

    def when_gone(self, tell: Callable[[], None]) -> None:
        self._reply.when_gone(tell)


class Admission:
    """The requests that are not answered yet.

    Args:
        run_calls: is asked which calls it knows.
        room: how many calls may be, and how many of one principal; other requests have a reserve beyond it.
        clock: measures how old they are.
    """

    def __init__(self, *, run_calls: Ref[executor.Command], room: Room, clock: Clock) -> None:
        self._executor = run_calls
        self._most = room.calls
        self._most_each = room.calls_each
        self._clock = clock
        self.stopping = False
        """Whether nothing is let in any more."""
        self._open: dict[int, Pending] = {}
        self._calls: dict[Principal, int] = {}
        self._counting = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def check_room(self, exchange: Exchange) -> None:
        """Refuse a call that is one too many.

        Raises:
            Busy: as many as allowed are in flight, of all or of this principal.
        """
        if len(self._open) >= self._most:
            raise Busy(f"{self._most} calls are in flight.", hint="Try again in a moment.")
        if self._calls.get(principal_of(exchange), 0) >= self._most_each:
            whose = "session" if exchange.dialect.sessions else "client"
            raise Busy(
                f"{self._most_each} calls of this {whose} are in flight.", hint="Wait until some of them have ended."
            )

    def let_in(self, exchange: Exchange) -> Exchange:
        """Take a request on the list; the exchange that is returned takes it off when it is completed.

        Raises:
            Busy, Stopping: it is not let in.
        """
        if self.stopping:
            raise Stopping("the daemon is stopping", hint="Connect again in a moment.")
        if len(self._open) >= self._most + RESERVE:
            raise Busy(f"{len(self._open)} requests are in flight.", hint="Try again in a moment.")
        reply = _Tracked(exchange.reply, self._leave)
        admitted = replace(exchange, reply=reply)
        self._open[id(reply)] = Pending(admitted, self._clock.monotonic())
        return admitted

    def note(self, call: Call) -> None:
        """Remember which call a request became."""
        pending = self._open.get(id(call.exchange.reply))
        if pending is not None:
            pending.call = call
            pending.principal = principal_of(call.exchange)
            with self._counting:
                self._calls[pending.principal] = self._calls.get(pending.principal, 0) + 1

    def _leave(self, key: int) -> None:
        """Take a request off the list, once."""
        pending = self._open.pop(key, None)
        if pending is None or pending.call is None:
            return
        with self._counting:
            left = self._calls[pending.principal] - 1
            if left:
                self._calls[pending.principal] = left
            else:
                del self._calls[pending.principal]

    def calls(self) -> list[Call]:
        """The calls that are not answered yet."""
        return [pending.call for pending in list(self._open.values()) if pending.call is not None]

    def aged_calls(self) -> list[tuple[Call, float]]:
        """The calls that are not answered yet, oldest first, each with its age in seconds."""
        now = self._clock.monotonic()
        return [
            (pending.call, now - pending.since) for pending in list(self._open.values()) if pending.call is not None
        ]

    def stop(self) -> None:
        """Refuse what comes from now on; what is in flight goes on."""
        self.stopping = True

    def tend(self) -> None:
        """Turn slow answers into streams, keep silent ones alive, and have answered what got lost. Once a second."""
        now = self._clock.monotonic()
        unanswered = list(self._open.values())
        for pending in unanswered:
            pending.exchange.reply.tend(now)
        self._sweep([pending for pending in unanswered if pending.since < now - LOST_AFTER_S], now)

    def _sweep(self, old: list[Pending], now: float) -> None:
        with contextlib.suppress(Busy):  # An executor that is behind is swept the next time.
            executor.sweep(self._executor, tuple(pending.call for pending in old if pending.call is not None))
        for pending in old:
            if pending.ended is None and pending.call is not None and pending.call.has_ended():
                pending.ended = now
            if pending.call is None or (pending.ended is not None and pending.ended < now - LOST_AFTER_S):
                logger.error("[a2mcp] internal error: a request was lost")
                pending.exchange.fail(Internal())
