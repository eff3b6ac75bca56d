"""The audit writer: the one that owns the log, so that order, rotation and append need no lock.

It drains its mailbox and writes the whole group at once, then passes each message on: a ``start`` to whoever runs the
call, a ``done`` to the connection. So nothing runs and nothing is answered before it is recorded, and records get
cheaper the more calls there are.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar, assert_never, cast

from a2mcp.audit.chain import Link
from a2mcp.audit.journal import Counts, Journal
from a2mcp.audit.record import done_line, event_line, start_line
from a2mcp.clock import Clock, iso
from a2mcp.errors import A2mcpError
from a2mcp.protocol import jsonrpc
from a2mcp.protocol.content import encode_result
from a2mcp.protocol.response import Response
from a2mcp.tools.call import TOOLS_CALL, Call, not_done
from a2mcp.tools.result import Encoded, Refusal, Result, text
from a2mcp.types import JsonObject, SessionId, new_call_id
from actors.kit import Actor
from actors.ref import Ask, Mailbox, Message, Ref

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2mcp.tools.context import Ticket

    Written = Callable[[str, Sequence[Any]], None]

logger = logging.getLogger("a2mcp.audit")


class Start(Message, frozen=True):
    """Record that a call begins, then tell ``then`` the message that runs it."""

    call: Call
    then: Ref[Any]
    message: Message

    def failed(self, error: A2mcpError) -> None:
        """Answer the call, whose record could not even be tried."""
        if self.call.claim():
            self.call.exchange.fail(error)


class Done(Message, frozen=True):
    """Record that a call has ended, then send its response."""

    call: Call
    is_error: bool
    response: Response
    ended: str | None = None

    def failed(self, error: A2mcpError) -> None:  # noqa: ARG002  # The result is there; it must not be lost.
        """Send the response all the same."""
        self.call.exchange.reply.complete(self.response)


class Event(Message, frozen=True):
    """Record something that is not a call."""

    tool: str
    session_id: SessionId | None
    args: JsonObject
    then: Ref[Any] | None = None
    message: Message | None = None
    """Told to ``then`` once the record is written."""

    def failed(self, error: A2mcpError) -> None:  # noqa: ARG002  # As of a call: no record holds up what it records.
        """Go on all the same."""
        _go_on(self)


class GetCounts(Ask[Counts], frozen=True):
    """Ask what became of the records so far."""


class GetLast(Ask[Link], frozen=True):
    """Ask which record was written last."""


Command = Start | Done | Event | GetCounts | GetLast


class AuditWriter(Actor[Command]):
    """Owns the journal.

    Args:
        mailbox: made by ``mailbox_for``.
        journal: the log.
        clock: for the time of each record.
        written: is told of each group of messages with their time once their records are written; must not block.
    """

    MAILBOX: ClassVar[int] = 131_072
    BATCH: ClassVar[int] = 512

    def __init__(self, mailbox: Mailbox, *, journal: Journal, clock: Clock, written: Written | None = None) -> None:
        super().__init__(mailbox)
        self._journal = journal
        self._clock = clock
        self._written = written

    def handle(self, batch: Sequence[Any]) -> None:
        """Write the group, then handle each message: what is left to do of it is to pass it on."""
        self._taken = list(batch)
        now = iso(self._clock.now())
        lines = [line for item in batch if (line := _line_of(item, now))]
        if lines:
            self._append(lines)
            if self._written is not None:
                self._written(now, batch)
        # From here on nothing is given back, even by a dying writer: its replacement would write it a second time.
        self._taken = []
        for item in batch:
            self.handle_one(item)

    def receive(self, message: Command) -> Counts | Link | None:
        """Pass on a message whose record is written."""
        match message:
            case Start(call=call, then=then, message=following):
                self._run(call, then, following)
            case Done(call=call, response=response):
                call.exchange.reply.complete(response)
            case Event():
                _go_on(message)
            case GetCounts():
                return self._journal.counts
            case GetLast():
                return self._journal.last
            case _:
                assert_never(message)
        return None

    def on_start(self) -> None:
        """Read where the chain stands: what is cut off from now on is noticed."""
        _ = self._journal.last

    def on_stop(self) -> None:
        """Let go of the file."""
        self._journal.close()

    def _append(self, lines: list[bytes]) -> None:
        try:
            self._journal.append(lines)
        except Exception:  # The rim: the journal answers for the disk, this for the journal; no call pays for either.
            logger.exception("[a2mcp] audit records not written")

    def _run(self, call: Call, then: Ref[Any], following: Message) -> None:
        try:
            then.tell(following)
        except A2mcpError as error:
            # It has its start, so it gets its done: as a message of ours, behind those of this group.
            finish(Ref(self.mailbox), call, text(str(error), is_error=True))


def _go_on(event: Event) -> None:
    if event.then is not None and event.message is not None:
        event.then.insist(event.message)


def _line_of(item: Any, now: str) -> bytes | None:
    """The record of a message, or None for one that has none or whose record cannot be made."""
    try:
        match item:
            case Start(call=call):
                client = call.exchange.caller.client
                return start_line(now, call.call_id, call.session_id, call.tool, call.summary, client=client)
            case Done():
                return _done_line(item, now)
            case Event(tool=tool, session_id=session_id, args=args):
                return event_line(now, new_call_id(), session_id, tool, args)
    except Exception:  # The rim: a record that cannot be made must not fail the call (seed, "Audit log").
        logger.exception("[a2mcp] audit record not made")
    return None


def _done_line(done: Done, now: str) -> bytes:
    call = done.call
    return done_line(
        now,
        call.call_id,
        call.session_id,
        call.tool,
        call.summary,
        is_error=done.is_error,
        client=call.exchange.caller.client,
        ended=done.ended,
    )


def begin(audit: Ref[Command], call: Call, *, then: Ref[Any], message: Message) -> None:
    """Record a call's start and then pass the message on to whoever runs it."""
    audit.tell(Start(call, then, message))


def complete(audit: Ref[Command], ticket: Ticket, outcome: Result | Encoded, *, ended: str | None = None) -> None:
    """End the call behind a ticket, for those who know it by no more than that."""
    # Our tickets are our calls: the executor made them.
    finish(audit, cast("Call", ticket), outcome, ended=ended)


def finish(audit: Ref[Command], call: Call, outcome: Result | Encoded | Refusal, *, ended: str | None = None) -> bool:
    """End a call: record it and send the result. False when somebody else has ended it already.

    ``ended`` is what the record says of a call that did not end by itself.
    """
    if call.method != TOOLS_CALL and isinstance(outcome, Result):
        outcome = not_done(outcome)
    if isinstance(outcome, Refusal):
        return _refuse(audit, call, outcome.error, ended)
    exchange = call.exchange
    # Encoded before it is claimed: what cannot be encoded must still be endable with an error.
    if isinstance(outcome, Encoded):
        encoded = exchange.dialect.written(outcome)
    else:
        encoded = encode_result(outcome, exchange.dialect)
    if not call.claim():
        return False
    response = Response(200, jsonrpc.result(exchange.request_id, encoded))
    audit.insist(Done(call, outcome.is_error, response, ended))
    return True


def _refuse(audit: Ref[Command], call: Call, error: A2mcpError, ended: str | None) -> bool:
    """Record the end of a call and send a JSON-RPC error, with the status that the dialect gives it."""
    if not call.claim():
        return False
    exchange = call.exchange
    status = error.status if exchange.dialect.http_statuses else 200
    body = jsonrpc.error_of(exchange.request_id, error)
    audit.insist(Done(call, is_error=True, response=Response(status, body), ended=ended))
    return True


def record(  # noqa: PLR0913  # The record, and what comes after it.
    audit: Ref[Command],
    tool: str,
    session_id: SessionId | None,
    args: JsonObject,
    *,
    then: Ref[Any] | None = None,
    message: Message | None = None,
) -> None:
    """Record something that is not a call. It is never refused: such things are few."""
    audit.insist(Event(tool, session_id, args, then, message))


def settle(audit: Ref[Command]) -> None:
    """Wait until what was recorded so far is in the log, five seconds at most: a log holds up nothing for ever."""
    audit.settle(timeout=5)


def counts(audit: Ref[Command]) -> Counts:
    """Ask what became of the records so far."""
    return audit.ask(GetCounts(), timeout=5)


def last(audit: Ref[Command]) -> Link:
    """Ask which record was written last."""
    return audit.ask(GetLast(), timeout=5)
