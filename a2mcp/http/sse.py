"""Server-sent events as bytes. Knows no connection."""

from __future__ import annotations

from typing import Final

COMMENT: Final = b": keep-alive\n\n"
"""Means nothing to the client; keeps everything between us and it from closing a silent stream."""


def message(body: bytes) -> bytes:
    """Write one JSON text as an event. Our JSON is on one line, and an event ends at an empty one."""
    return b"event: message\ndata: " + body + b"\n\n"


def accepted(accept: str | None) -> bool:
    """Whether an ``Accept`` value takes an event stream.

    Read leniently, as clients write it: an absent header takes whatever comes, which here is JSON, so only one that
    names the type (or ``text/*``) asks for streams.
    """
    if not accept:
        return False
    return any(_takes(part) for part in accept.lower().split(","))


def tolerated(accept: str | None) -> bool:
    """Whether an ``Accept`` value leaves room for a stream where nothing else can be the answer."""
    return not accept or accepted(accept) or "*/*" in accept


def only_streams(accept: str | None) -> bool:
    """Whether an ``Accept`` value takes a stream and no JSON."""
    if not accept or not accepted(accept):
        return False
    kinds = {part.partition(";")[0].strip() for part in accept.lower().split(",")}
    return not kinds & {"application/json", "application/*", "*/*"}


def _takes(part: str) -> bool:
    kind, _, parameters = part.partition(";")
    if kind.strip() not in ("text/event-stream", "text/*"):
        return False
    return not any(p.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000") for p in parameters.split(";"))
