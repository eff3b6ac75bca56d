"""The front: lets requests in and knows those that are not answered yet.

It has no thread of its own: the server's loop calls it, so its mailbox is the socket. It never blocks.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from a2mcp.audit.record import summarise
from a2mcp.errors import Busy, Internal, Stopping
from a2mcp.protocol.exchange import Exchange
from a2mcp.tools.call import Call
from a2mcp.types import new_call_id
from actors import executor, sessions

if TYPE_CHECKING:
    from a2mcp.clock import Clock
    from a2mcp.protocol.exchange import Reply
    from a2mcp.protocol.response import Response
    from a2mcp.tools.registry import Registry
    from actors.ref import Ref

RESERVE: Final = 1024
"""Requests let in beyond the cap on calls, so that a full house still answers ``ping`` and ends sessions."""
LOST_AFTER_S: Final = 30.0
"""A request this old that no actor knows has been lost."""

logger = logging.getLogger("a2mcp.front")


class _Pending(msgspec.Struct):
    """A request that is not answered yet."""

    exchange: Exchange
    since: float
    call: Call | None = None
    ended: float | None = None
    """When a sweep first found the call ended and its reply not sent."""


class _Tracked:
    """A reply that takes itself off the list when it is completed."""

    __slots__ = ("_open", "_reply")

    def __init__(self, reply: Reply, unanswered: dict[int, _Pending]) -> None:
        self._reply = reply
        self._open = unanswered

    def complete(self, response: Response) -> bool:
        completed = self._reply.complete(response)
        self._open.pop(id(self), None)
        return completed


class Front:
    """Admission: a cap on what is in flight, an end to it while the daemon goes down, and a sweep for what got lost."""

    def __init__(
        self,
        *,
        session_table: Ref[sessions.Command],
        run_calls: Ref[executor.Command],
        registry: Registry,
        in_flight: int,
        clock: Clock,
    ) -> None:
        self._sessions = session_table
        self._executor = run_calls
        self._registry = registry
        self._most = in_flight
        self._clock = clock
        self._stopping = False
        # NOTE: written by the loop and by whoever completes a reply. Each change is one dict operation, which the
        # interpreter makes atomic; nothing here reads, decides and then writes.
        self._open: dict[int, _Pending] = {}

    # --- what the edge calls --------------------------------------------------------------------------------------

    def open_session(self, exchange: Exchange, encoded: bytes) -> None:
        """Answer with this result and a new session."""
        self._hand_over(sessions.Open(self._let_in(exchange), encoded))

    def end_session(self, exchange: Exchange) -> None:
        """End the exchange's session and answer 204."""
        self._hand_over(sessions.End(self._let_in(exchange)))

    def answer(self, exchange: Exchange, response: Response) -> None:
        """Answer with this response if the exchange's session is alive."""
        self._hand_over(sessions.Answer(self._let_in(exchange), response))

    def call(self, exchange: Exchange, tool: str, arguments: msgspec.Raw) -> None:
        """Run a tool if the exchange's session is alive."""
        if len(self._open) >= self._most:
            raise Busy(f"{self._most} calls are in flight.", hint="Try again in a moment.")
        summary = summarise(arguments)  # Before it is let in: what breaks here leaves nothing behind.
        admitted = self._let_in(exchange)
        call = Call(new_call_id(), admitted, tool, arguments, summary)
        pending = self._open.get(id(admitted.reply))
        if pending is not None:
            pending.call = call
        self._hand_over(sessions.Admit(call))

    def catalog(self) -> bytes:
        """The JSON array of the tools that are offered now."""
        return self._registry.catalog()

    def _hand_over(self, message: sessions.Command) -> None:
        try:
            self._sessions.tell(message)
        except Busy as error:
            message.failed(error)

    def _let_in(self, exchange: Exchange) -> Exchange:
        if self._stopping:
            raise Stopping("the daemon is stopping", hint="Connect again in a moment.")
        if len(self._open) >= self._most + RESERVE:
            raise Busy(f"{len(self._open)} requests are in flight.", hint="Try again in a moment.")
        reply = _Tracked(exchange.reply, self._open)
        admitted = replace(exchange, reply=reply)
        self._open[id(reply)] = _Pending(admitted, self._clock.monotonic())
        return admitted

    # --- what the system calls ------------------------------------------------------------------------------------

    @property
    def unanswered(self) -> int:
        """How many requests are not answered yet."""
        return len(self._open)

    def stop_admitting(self) -> None:
        """Refuse what comes from now on; what is in flight goes on."""
        self._stopping = True

    def sweep(self) -> None:
        """Find what actors lost, and have it answered. Called once a second by the loop."""
        now = self._clock.monotonic()
        limit = now - LOST_AFTER_S
        old = [pending for pending in list(self._open.values()) if pending.since < limit]
        with contextlib.suppress(Busy):  # An executor that is behind is swept the next time.
            executor.sweep(self._executor, tuple(pending.call for pending in old if pending.call is not None))
        for pending in old:
            if pending.ended is None and pending.call is not None and pending.call.has_ended():
                pending.ended = now
            if pending.call is None or (pending.ended is not None and pending.ended < limit):
                logger.error("[a2mcp] internal error: a request was lost")
                pending.exchange.fail(Internal())
