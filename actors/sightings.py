"""What the audit writer has written, as events: of calls, how long they took and what an edit changed.

Owns the moments at which calls began. No actor; the events actor owns it.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.audit.record import client_name, summarise, tool_name
from a2mcp.masking import mask
from a2mcp.observe.event import CALL_DONE, CALL_START, RECORD, Event
from actors import audit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2mcp.tools.call import Call
    from a2mcp.types import CallId

    Trace = Callable[[Call, Event, int], None]
    """Is given a call that has ended, its event, and the nanoseconds of the wall clock at its end."""

MOST_DIFF: Final = 16 * 1024
"""Characters of what an edit changed that are told."""

logger = logging.getLogger("a2mcp.observe")


class Sightings:
    """Turns records into events.

    Args:
        trace: is given each call that has ended.
    """

    def __init__(self, trace: Trace | None = None) -> None:
        self._trace = trace
        self._began: dict[CallId, float] = {}

    def of_records(self, ts: str, at: float, items: Sequence[Any]) -> list[Event]:
        """The events of a group of records, in their order. One that cannot be made is left out."""
        found = (self._safely(item, ts, at) for item in items)
        return [event for event in found if event is not None]

    def forget(self) -> None:
        """Forget when calls began: their ends may have been lost."""
        self._began.clear()

    def _safely(self, item: Any, ts: str, at: float) -> Event | None:
        try:
            return self._of_record(item, ts, at)
        except Exception:  # The rim: what is observed must not end with one bad event.
            logger.exception("[a2mcp] internal error: an event could not be made")
            return None

    def _of_record(self, item: Any, ts: str, at: float) -> Event | None:
        match item:
            case audit.Start(call=call):
                self._began[call.call_id] = at
                return _of_call(CALL_START, call, ts, status="running")
            case audit.Done():
                return self._of_done(item, ts, at)
            case audit.Event(tool=tool, session_id=session_id, args=args):
                summary = summarise(msgspec.json.encode(args)).args
                return Event(ts=ts, kind=RECORD, tool=tool, session=session_id, args=summary)
        return None

    def _of_done(self, done: audit.Done, ts: str, at: float) -> Event:
        call = done.call
        began = self._began.pop(call.call_id, None)
        status = done.ended or ("error" if done.is_error else "ok")
        seconds = None if began is None else round(at - began, 6)
        diff = _diff(done) if call.tool == "edit" and not done.is_error else None
        event = _of_call(CALL_DONE, call, ts, status=status, seconds=seconds, diff=diff)
        if self._trace is not None:
            self._trace(call, event, time.time_ns() - int((time.monotonic() - at) * 1e9))
        return event


def _of_call(  # noqa: PLR0913  # What differs between the two events of a call.
    kind: str, call: Call, ts: str, *, status: str, seconds: float | None = None, diff: str | None = None
) -> Event:
    client = call.exchange.caller.client
    return Event(
        ts=ts,
        kind=kind,
        tool=tool_name(call.tool),
        status=status,
        call=call.call_id,
        session=call.session_id,
        client=client_name(client) if client else None,
        seconds=seconds,
        args=call.summary.args,
        diff=diff,
    )


class _Block(msgspec.Struct, frozen=True):
    text: str = ""


class _Result(msgspec.Struct, frozen=True):
    content: tuple[_Block, ...] = ()


class _Body(msgspec.Struct, frozen=True):
    result: _Result = _Result()


def _diff(done: audit.Done) -> str | None:
    """What an edit changed, from the text that its caller is given: a sentence, then the diff."""
    try:
        content = msgspec.json.decode(done.response.body, type=_Body).result.content
    except msgspec.DecodeError:
        return None
    _, _, diff = (content[0].text if content else "").partition("\n")
    return mask(diff[:MOST_DIFF]) or None
