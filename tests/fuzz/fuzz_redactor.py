"""What of a call's arguments goes into the log: one line of JSON of a bounded size, whatever the bytes are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from a2mcp.audit.record import MAX_ARGS, start_line
from a2mcp.audit.redact import MAX_DEPTH, MAX_TEXT, redact
from a2mcp.masking import MASK, mask, may_hold_secret
from a2mcp.types import CallId

if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST_LINE = MAX_ARGS + 1024


def check(data: bytes) -> None:
    """Fail unless these arguments make a good line, and what is said to hold no secret is left alone."""
    text = data.decode("utf-8", "replace")
    line = start_line("2026-10-16T04:35:23.000Z", CallId("c"), None, text[:300], data, client=text[:300])
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert len(line) <= _LARGEST_LINE
    args = json.loads(line.decode("utf-8"))["args"]
    assert all(len(text) <= MAX_TEXT for text in _texts(args))
    assert mask(mask(text)) == mask(text)
    _is_faithful(data, args)


def _is_faithful(data: bytes, args: Any) -> None:
    """What needs no redacting is in the line as it was sent, and nothing is masked that was not seen to need it."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return
    shallow = data.count(b"[") + data.count(b"{") <= MAX_DEPTH
    if data and shallow and len(data) <= MAX_TEXT and data.isascii() and not may_hold_secret(data):
        assert args == json.loads(data) or b"\n" in data or b"\r" in data, "decoded only to become one line"
        assert MASK not in json.dumps(redact(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from (key, *_texts(member))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
