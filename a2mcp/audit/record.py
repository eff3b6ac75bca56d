"""The lines of the audit log: their members, their order and their size.

Owns what one record says. Does not know files, sessions or tools, and logs nothing but what it is given: our ids, the
tool's name and a summary of the arguments.

A line is always one line of valid UTF-8 JSON. Arguments come in as the bytes that the request was cut into, which the
JSON decoder has walked but not looked into: it lets wrong UTF-8 and line breaks between tokens through. So bytes go
into a line as they are only when they cannot hold any of that; everything else is decoded, redacted and encoded anew.
"""

import json
from functools import lru_cache
from typing import Any

import msgspec

from a2mcp.audit.redact import MAX_DEPTH, MAX_TEXT, fold, redact
from a2mcp.masking import mask, may_hold_secret
from a2mcp.types import CallId, JsonObject, SessionId

MAX_ARGS = 1024
"""Bytes of a summary of arguments."""
MAX_ERROR = 512
"""Characters of why something that is not a call went wrong."""
MAX_CLIENT = 80
"""Characters of a client's name."""
CANCELLED = "cancelled"
ABORTED = "aborted"
TRUNCATED = "<truncated>"
"""The member that says that a summary was cut, with the bytes it would have had."""
UNREADABLE = "<unreadable>"
"""The member that stands for arguments that are not JSON or too deep to decode, with their folded text."""

# A string over 120 characters takes at least 122 bytes with its quotes.
_SHORT = MAX_TEXT + 1
# What lies 33 deep has 33 brackets before and 33 after it.
_SHALLOW = 2 * MAX_DEPTH + 1
# PERF: looking for a byte by its number takes a fifth of the time of looking for it as a string of bytes.
_LF, _CR, _OPEN_ARRAY, _OPEN_OBJECT = b"\n\r[{"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_check = msgspec.json.Decoder(msgspec.Raw).decode


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename={"is_error": "isError"}):
    """One line. The two lines of a call have the same ``id``; an event has one line, ``done``."""

    ts: str
    id: str
    sid: str | None
    phase: str
    tool: str
    client: str | msgspec.UnsetType = msgspec.UNSET
    """What the caller says it is."""
    is_error: bool | msgspec.UnsetType = msgspec.UNSET
    ended: str | msgspec.UnsetType = msgspec.UNSET
    """Of a call that did not end by itself: ``cancelled`` by its caller, or ``aborted`` when the daemon stopped."""
    args: msgspec.Raw
    seq: int | msgspec.UnsetType = msgspec.UNSET
    """This and what follows is the line's place in the chain, which ``chain`` adds."""
    prev: str | msgspec.UnsetType = msgspec.UNSET
    hash: str | msgspec.UnsetType = msgspec.UNSET


class Summary(msgspec.Struct, frozen=True, gc=False):
    """Arguments as they go into the log; made once for both lines of a call."""

    args: msgspec.Raw


Args = bytes | msgspec.Raw | Summary


def summarise(args: bytes | msgspec.Raw) -> Summary:
    """Summarise a call's arguments for the log in at most 1 KB; no bytes at all are an empty object.

    When the redacted arguments are larger, the summary is ``{"<truncated>": bytes, …}`` with the members that fit, in
    their order; the value of a member that does not fit becomes ``"<cut:bytes>"``.
    """
    raw = bytes(args)
    if _verbatim(raw):
        return Summary(msgspec.Raw(raw))
    return Summary(msgspec.Raw(_bounded(redact(_read(raw)))))


def start_line(  # noqa: PLR0913 - one argument per member of the line
    ts: str, call_id: CallId, sid: SessionId | None, tool: str, args: Args, *, client: str | None = None
) -> bytes:
    """The line that is on disk before the tool runs.

    Args:
        ts: the moment, as ``clock.iso`` writes it.
        call_id: our id of the call, which pairs its two lines.
        sid: a session we issued, or None where the dialect has no sessions.
        tool: the name the caller asked for, known or not.
        args: the arguments' JSON, or what ``summarise`` made of it.
        client: what the caller says it is.
    """
    named = client_name(client) if client else msgspec.UNSET
    return _line(
        Record(ts=ts, id=call_id, sid=sid, phase="start", tool=tool_name(tool), client=named, args=_summary(args))
    )


def done_line(  # noqa: PLR0913 - one argument per member of the line
    ts: str,
    call_id: CallId,
    sid: SessionId | None,
    tool: str,
    args: Args,
    *,
    is_error: bool,
    client: str | None = None,
    ended: str | None = None,
) -> bytes:
    """The line that is on disk before the answer leaves; takes what ``start_line`` takes and how the call ended."""
    return _line(
        Record(
            ts=ts,
            id=call_id,
            sid=sid,
            phase="done",
            tool=tool_name(tool),
            client=client_name(client) if client else msgspec.UNSET,
            is_error=is_error,
            ended=ended or msgspec.UNSET,
            args=_summary(args),
        )
    )


def event_line(ts: str, event_id: CallId, sid: SessionId | None, tool: str, args: JsonObject) -> bytes:
    """The only line of something that is not a call, such as a switch or a tunnel.

    Args:
        ts: the moment, as ``clock.iso`` writes it.
        event_id: our id of the event.
        sid: the session that asked, or None where the operator did.
        tool: the part it concerns, for example ``host_llm``.
        args: what happened; redacted as a call's arguments are, save ``error``, our own sentence, of which only secrets
            are left out.
    """
    kept = redact(args)
    if isinstance(error := args.get("error"), str):
        kept = {**kept, "error": mask(error)[:MAX_ERROR]}
    return _line(
        Record(ts=ts, id=event_id, sid=sid, phase="done", tool=tool_name(tool), args=msgspec.Raw(_bounded(kept)))
    )


def _line(record: Record) -> bytes:
    return _encode(record) + b"\n"


def tool_name(tool: str) -> str:
    """Write the name of a tool as far as it may be kept: it may be anything that a caller sent."""
    return _short_name(tool) if len(tool) <= MAX_TEXT else fold(tool)


def client_name(name: str) -> str:
    """Write what a caller says it is, as far as it may be kept."""
    return _short_client(name[: 2 * MAX_CLIENT])


# PERF: the same few with every call.
_short_name = lru_cache(maxsize=256)(fold)


@lru_cache(maxsize=256)
def _short_client(name: str) -> str:
    return mask(name)[:MAX_CLIENT].encode("utf-8", "replace").decode()


def _summary(args: Args) -> msgspec.Raw:
    return args.args if isinstance(args, Summary) else summarise(args).args


def _verbatim(raw: bytes) -> bool:
    """Whether the bytes are JSON that redacting would not change and that stays on one line."""
    if len(raw) > _SHORT or not raw.isascii() or _LF in raw or _CR in raw:
        return False
    if len(raw) > _SHALLOW and raw.count(_OPEN_ARRAY) + raw.count(_OPEN_OBJECT) > MAX_DEPTH:
        return False
    if may_hold_secret(raw):
        return False
    try:
        _check(raw)
    except msgspec.DecodeError:
        return False
    return True


def _read(raw: bytes) -> Any:
    if not raw:
        return {}
    try:
        return _decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return _read_leniently(raw)


def _read_leniently(raw: bytes) -> Any:
    """Decode what the strict decoder refuses: wrong UTF-8, half a surrogate pair, numbers out of range."""
    text = raw.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {UNREADABLE: text}


def _bounded(value: Any) -> bytes:
    encoded = _encode(value)
    return encoded if len(encoded) <= MAX_ARGS else _cut(value, len(encoded))


def _cut(value: Any, size: int) -> bytes:
    kept: dict[str, Any] = {TRUNCATED: size}
    room = MAX_ARGS - len(_encode(kept))
    for key, member in value.items() if isinstance(value, dict) else ():
        if key == TRUNCATED:
            continue
        overhead = len(_encode(key)) + len(b",:")
        encoded = _encode(member)
        if overhead + len(encoded) > room:
            encoded = _encode(f"<cut:{len(encoded)}>")
        if overhead + len(encoded) <= room:
            kept[key] = msgspec.Raw(encoded)
            room -= overhead + len(encoded)
    return _encode(kept)
