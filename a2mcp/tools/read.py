"""The tool ``read``: a file's lines with their numbers, a folder's entries, a picture, or what else a file is.

The header line says what an edit needs to know (sha256, charset, line ends) and admits what was not looked at: a file
over ``_WHOLE`` is neither hashed nor counted, only the lines asked for are read.
"""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from a2mcp import files
from a2mcp.errors import BadArgument, ToolError
from a2mcp.host import kinds, textfile, window
from a2mcp.host.paths import refusal, resolve, show
from a2mcp.tools.lines import Numbered, number
from a2mcp.tools.output import human_size
from a2mcp.tools.result import Image, Outcome, Result, Text, text
from a2mcp.tools.schema import spec_for
from a2mcp.tools.spec import Tier, Tool

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.host.images import Picture
    from a2mcp.tools.context import Context
    from a2mcp.types import JsonObject

_WHOLE: Final = 16 * 1024 * 1024
_UNSIZED: Final = 1024 * 1024
"""Bytes taken from a file that does not know its size, as in /proc."""
_PICTURE: Final = 64 * 1024 * 1024
_WINDOW: Final = 256 * 1024
_LIMIT: Final = 100_000
_ENTRIES: Final = 500


class ReadParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to read."""

    path: Annotated[str, msgspec.Meta(description="File or folder: absolute, ~/…, file://…, or relative.")]
    offset: (
        Annotated[
            int,
            msgspec.Meta(description="First line to show, from 1; negative: from the end (-20: the last 20 lines)."),
        ]
        | None
    ) = None
    limit: Annotated[int, msgspec.Meta(description="Lines to show at most; all if absent.", ge=1)] | None = None


class _Wanted(msgspec.Struct, frozen=True):
    """What is asked for, after the defaults."""

    path: Path
    shown: str
    room: int
    first: int
    limit: int
    notes: tuple[str, ...]


def run(params: ReadParams, context: Context) -> Outcome:
    """Read what the caller names.

    Raises:
        ToolError: it cannot be read, or the lines asked for are not there.
    """
    wanted = _wanted(params, context)
    path = wanted.path
    try:
        descriptor, status = files.open_regular(path)
    except IsADirectoryError:
        return _folder(wanted)
    except OSError as error:
        raise refusal("read", path, error) from error
    try:
        if status.st_size > _WHOLE:
            return _large(descriptor, status.st_size, wanted)
        cap = _WHOLE if status.st_size else _UNSIZED
        data = files.read_up_to(descriptor, cap + 1)
    except OSError as error:
        raise refusal("read", path, error) from error
    finally:
        os.close(descriptor)
    return _whole(data, wanted) if len(data) <= cap else _endless(data[:cap], wanted)


def _wanted(params: ReadParams, context: Context) -> _Wanted:
    if params.offset == 0:
        raise BadArgument("offset", "a line number from 1, or a negative one counted from the end", "0")
    limit = params.limit or sys.maxsize
    notes: tuple[str, ...] = ()
    if params.limit and params.limit > _LIMIT:
        limit, notes = _LIMIT, (f"limit {params.limit} was lowered to {_LIMIT}",)
    path = resolve(params.path, context.cwd)
    return _Wanted(path, show(path), context.limits.output_bytes, params.offset or 1, limit, notes)


def _whole(data: bytes, wanted: _Wanted) -> Result:
    digest = hashlib.sha256(data).hexdigest()
    document = textfile.decode(data)
    if document is None:
        return _binary(wanted, data, len(data), digest)
    lines = textfile.split_lines(document.text)
    total = len(lines)
    first = max(1, total + 1 + wanted.first) if wanted.first < 0 else wanted.first
    if first > max(total, 1):
        raise _past_the_end(wanted, first, f", which has {total} lines")
    chosen = lines if first == 1 and total <= wanted.limit else lines[first - 1 : first - 1 + wanted.limit]
    numbered = number(chosen, first, wanted.room, wanted.shown)
    charset, ending = document.encoding.label, _ending(document.text)
    header = f"{wanted.shown} | sha256 {digest} | {charset} | {ending} | {numbered.shown} of {total}"
    facts: JsonObject = {
        "path": wanted.shown,
        "sha256": digest,
        "charset": charset,
        "lineEnding": ending,
        "size": len(data),
        "totalLines": total,
    }
    return _page(header, numbered, wanted.notes, facts)


def _past_the_end(wanted: _Wanted, first: int, how: str = "") -> ToolError:
    text = f"offset {first} is past the end of {wanted.shown}{how}."
    return ToolError(text, hint="A negative offset counts from the end.")


def _ending(content: str) -> str:
    ending = textfile.line_ending(content)
    return ending if not content or content.endswith(("\n", "\r")) else f"{ending}, no line end at the end"


def _page(header: str, numbered: Numbered, notes: tuple[str, ...], facts: JsonObject) -> Result:
    header = " | ".join((header, *notes))
    facts |= {"firstLine": numbered.first, "lastLine": numbered.last, "text": numbered.body}
    return text(f"[{header}]\n{numbered.body}", structured=facts)


def _large(descriptor: int, size: int, wanted: _Wanted) -> Result:
    """A file that is not read whole: only the window of lines asked for."""
    head = files.read_up_to(descriptor, _WINDOW)
    kind = kinds.describe(head)
    if size <= _PICTURE and kinds.is_picture(kind):
        return _binary(wanted, head + files.read_up_to(descriptor, _PICTURE), size, None)
    if kind != kinds.UNKNOWN or textfile.decode_part(_before_nul(head)) is None:
        return _binary(wanted, head, size, None)
    found = (
        window.from_line(descriptor, wanted.first, _WINDOW)
        if wanted.first > 0
        else window.from_end(descriptor, -wanted.first, size, _WINDOW)
    )
    if found is None or not found.data:
        if wanted.first > 0 and size <= window.SCANNED:
            raise _past_the_end(wanted, wanted.first)
        raise ToolError(
            f"Line {wanted.first} of {wanted.shown} ({human_size(size)}) is not among those looked through.",
            hint=f"At most {human_size(window.SCANNED)} are; use bash with sed, head or tail.",
        )
    whole = found.start + len(found.data) >= size
    if not found.start:
        # There were fewer lines than were asked for from the end.
        wanted = msgspec.structs.replace(wanted, first=1)
    return _part(found.data, size, wanted, whole=whole)


def _endless(data: bytes, wanted: _Wanted) -> Result:
    """A file that gave more than its size promised: a growing one, or one of /proc."""
    if textfile.decode_part(data) is None:
        return _binary(wanted, data, None, None)
    lines = data.split(b"\n")
    if not 0 < wanted.first <= len(lines):
        raise ToolError(
            f"{wanted.shown} has no known end; only its first {human_size(len(data))} are read.",
            hint=f"Give an offset from 1 to {len(lines)}.",
        )
    return _part(b"\n".join(lines[wanted.first - 1 :]), None, wanted, whole=False)


def _part(data: bytes, size: int | None, wanted: _Wanted, *, whole: bool) -> Result:
    """Lines of a file whose total nobody has counted."""
    text_part = _before_nul(data)
    document = textfile.decode_part(text_part)
    if document is None or not text_part:
        return _binary(wanted, data, size, None)
    notes = wanted.notes
    if len(text_part) < len(data):
        whole, notes = False, (*notes, "bytes that are not text follow")
    lines = document.text.replace("\r\n", "\n").split("\n")
    if (whole and not lines[-1]) or (not whole and len(lines) > 1):
        lines.pop()
    numbered = number(lines[: wanted.limit], wanted.first, wanted.room, wanted.shown)
    if not whole and b"\n" not in text_part:
        notes = (*notes, "the line goes on after what was read")
    why = f"{human_size(size)} are too many (over {human_size(_WHOLE)})" if size is not None else "size unknown"
    charset, ending = document.encoding.label, textfile.line_ending(document.text)
    header = (
        f"{wanted.shown} | sha256 not computed: {why} | {charset} | {ending} | {numbered.shown} of an unknown total"
    )
    facts: JsonObject = {
        "path": wanted.shown,
        "sha256": None,
        "charset": charset,
        "lineEnding": ending,
        "size": size,
        "totalLines": None,
    }
    return _page(header, numbered, notes, facts)


def _before_nul(data: bytes) -> bytes:
    """The whole lines before the first NUL: what follows is a hole or not text."""
    at = data.find(b"\0")
    return data if at < 0 else data[: data.rfind(b"\n", 0, at) + 1]


def _binary(wanted: _Wanted, data: bytes, size: int | None, digest: str | None) -> Result:
    kind = kinds.describe(data[: kinds.HEAD_BYTES])
    reason = ""
    if kinds.is_picture(kind) and len(data) == size:
        from a2mcp.host import images  # noqa: PLC0415 - few calls see a picture

        try:
            return _picture(wanted, images.prepare(data), len(data), digest)
        except images.NoPicture as error:
            reason = f"; {error}"
    hashed = f"sha256 {digest}" if digest else "sha256 not computed"
    length = f"{human_size(size)} ({size} bytes)" if size is not None else "unknown size"
    facts: JsonObject = {"path": wanted.shown, "sha256": digest, "kind": kind, "size": size}
    return text(f"[{wanted.shown} | {hashed} | binary: {kind}, {length}{reason}]", structured=facts)


def _picture(wanted: _Wanted, picture: Picture, size: int, digest: str | None) -> Result:
    from binascii import b2a_base64  # noqa: PLC0415 - few calls see a picture

    hashed = f"sha256 {digest}" if digest else "sha256 not computed"
    note = f"[{wanted.shown} | {hashed} | image: {picture.note}, {human_size(size)}]"
    data = b2a_base64(picture.data, newline=False).decode()
    facts: JsonObject = {"path": wanted.shown, "sha256": digest, "kind": picture.note, "size": size}
    return Result(content=(Text(note), Image(data=data, mime_type=picture.mime_type)), structured=facts)


def _folder(wanted: _Wanted) -> Result:
    from a2mcp.host.listing import listing  # noqa: PLC0415 - keeps the way of a file short

    try:
        found = listing(wanted.path, wanted.first, min(wanted.limit, _ENTRIES))
    except OSError as error:
        raise refusal("list", wanted.path, error) from error
    if found.first > max(found.total, 1):
        raise _past_the_end(wanted, found.first, f", which has {found.total} entries")
    first, last = min(found.first, found.total), found.first + len(found.lines) - 1
    total = f"{found.total}" if found.complete else f"the first {found.total}"
    more = f' | more: "offset": {last + 1}' if last < found.total else ""
    header = " | ".join((f"{wanted.shown} | folder | entries {first}-{last} of {total}{more}", *wanted.notes))
    facts: JsonObject = {"path": wanted.shown, "kind": "folder", "entries": found.lines, "total": found.total}
    return text("\n".join((f"[{header}]", *found.lines)), structured=facts)


TOOL: Final = Tool(
    spec=spec_for(
        ReadParams,
        name="read",
        title="Read a file or folder",
        description=(
            "Read a text file with line numbers, list a folder, see a picture, or learn what kind of file it is. The"
            " first line of the result gives the sha256 (pass it as base_sha256 to write or edit), charset, line ends,"
            " and which lines are shown. Large output is cut in the middle and says how to read the rest."
        ),
        tier=Tier.READ,
        idempotent=True,
    ),
    params=ReadParams,
    run=run,
)
