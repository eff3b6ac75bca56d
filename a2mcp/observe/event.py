"""What is observed: one event, and which events somebody wants to see.

Owns the kinds, the fields and their JSON. Does not know where events come from or who watches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CALL_START: Final = "call.start"
CALL_DONE: Final = "call.done"
SESSION: Final = "session"
WAITING: Final = "approval.waiting"
ANSWERED: Final = "approval.answered"
JOB: Final = "job"
RECORD: Final = "record"
"""Something that is not a call and stands in the audit log: what the operator did, the tunnel, a share."""
WARNING: Final = "warning"
GAP: Final = "gap"
KINDS: Final = (CALL_START, CALL_DONE, SESSION, WAITING, ANSWERED, JOB, RECORD, WARNING, GAP)

LOST: Final = "lost"
"""Of a call, in the place of its end: the daemon ended before it had. Of a job: nobody saw how it ended."""
JOB_STATES: Final = ("running", "background", "ended", "orphan", LOST)
"""How a job may stand: the second half of its kind, and its status."""
STATUSES: Final = tuple(
    dict.fromkeys(
        (
            *("running", "ok", "error", "cancelled", "aborted"),  # of a call
            *("waiting", "approved", "denied", "expired", "withdrawn"),  # of an approval
            *("opened", "ended"),  # of a session
            *JOB_STATES,
            *("warning", "error", "critical"),  # of a warning
        )
    )
)

_PLACES: Final = ("path", "cwd", "uri")
"""The arguments that say where a call works."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One thing that happened. ``sequence`` rises by one with each, across restarts; a hole in it is a gap."""

    sequence: int = 0
    ts: str = ""
    kind: str
    tool: str | None = None
    """The tool of a call; of a record, the part that it concerns."""
    status: str | None = None
    """``running``, ``ok``, ``error``, ``cancelled``, ``aborted``, ``waiting``, ``approved``, ``denied`` …"""
    call: str | None = None
    """Our id of the call, as in the audit log."""
    session: str | None = None
    client: str | None = None
    """What the caller says it is."""
    seconds: float | None = None
    """How long it took."""
    args: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """Arguments as the audit log has them, or what else there is to say: always one JSON value of a few KB."""
    diff: str | None = None
    """What an edit changed. Shown live and never kept: it may hold what nobody wants on the disk twice."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which events somebody wants; what is None does not matter."""

    tool: str | None = None
    status: str | None = None
    session: str | None = None
    """The id of a session, or its beginning."""
    path: str | None = None
    """Only what works at this path or below it, by its arguments ``path``, ``cwd`` or ``uri``."""
    kind: str | None = None
    """A kind, or the part of one before its dot."""

    def takes(self, event: Event) -> bool:
        """Whether the event is wanted. A gap always is: nobody can know what was in it."""
        return event.kind == GAP or (
            self.tool in (None, event.tool)
            and self.status in (None, event.status)
            and (self.session is None or (event.session or "").startswith(self.session))
            and (self.kind is None or event.kind == self.kind or event.kind.startswith(self.kind + "."))
            and (self.path is None or _at(event.args, self.path))
        )


ALL: Final = Wanted()

_encoder = msgspec.json.Encoder()
encode = _encoder.encode
encode_lines = _encoder.encode_lines
decode = msgspec.json.Decoder(Event).decode
decode_lines = msgspec.json.Decoder(Event).decode_lines


def as_args(**facts: object) -> msgspec.Raw:
    """Write facts of our own as an event has them."""
    return msgspec.Raw(encode({name: fact for name, fact in facts.items() if fact is not None}))


def gap(first: int, last: int) -> Event:
    """Say that these events were not seen. It has the number of the last of them, so that counting goes on."""
    return Event(sequence=last, kind=GAP, args=as_args(first=first, last=last))


def with_gaps(events: Iterable[Event], after: int) -> Iterator[Event]:
    """Put a gap wherever numbers are missing; the first number is expected to be the one after ``after``."""
    expected = after + 1
    for event in events:
        if event.sequence > expected:
            yield gap(expected, event.sequence - 1)
        expected = event.sequence + 1
        yield event


def as_sse(sequence: int, encoded: bytes) -> bytes:
    """Write an event's JSON for an event stream; the number is what a browser sends back when it reconnects."""
    return b"id: %d\ndata: %b\n\n" % (sequence, encoded)


def _at(args: msgspec.Raw | msgspec.UnsetType, path: str) -> bool:
    if args is msgspec.UNSET:
        return False
    try:
        given = msgspec.json.decode(args)
    except (ValueError, RecursionError):
        return False
    if not isinstance(given, dict):
        return False
    below = path.rstrip("/") + "/"
    places = (str(given[name]).removeprefix("file://") for name in _PLACES if isinstance(given.get(name), str))
    return any(place == path or place.startswith(below) for place in places)
