"""The tool ``edit``: literal replacements in one file, all of them or none.

Puts together what knows the parts: ``textfile`` the charset, ``textedit`` the places, ``textdiff`` the diff,
``replace`` the file. All between looking at the file and replacing it happens in the file's turn: two edits at once
both land.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from a2mcp import files
from a2mcp.errors import BadArgument, ToolError
from a2mcp.host import replace, textedit, textfile
from a2mcp.host.paths import refusal, resolve, show
from a2mcp.tools.output import clip_middle, human_size
from a2mcp.tools.outputs import FLAG, NUMBER, TEXT, members
from a2mcp.tools.result import Outcome, Result, text
from a2mcp.tools.schema import spec_for
from a2mcp.tools.spec import Tier, Tool
from a2mcp.tools.write import BaseHash

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.tools.context import Context

_LARGEST: Final = 16 * 1024 * 1024


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """One replacement."""

    old_text: Annotated[
        str, msgspec.Meta(description="Text of the file, literally, without line numbers; must be there exactly once.")
    ]
    new_text: Annotated[str, msgspec.Meta(description="What to put in its place.")]
    all: Annotated[bool, msgspec.Meta(description="Replace every place instead of the only one.")] = False


class EditParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to change where."""

    path: Annotated[str, msgspec.Meta(description="The file: absolute, ~/…, file://…, or relative.")]
    edits: Annotated[
        list[Edit],
        msgspec.Meta(description="Each is matched against the file as it is before the call.", min_length=1),
    ]
    base_sha256: BaseHash = None
    dry_run: Annotated[bool, msgspec.Meta(description="Only return the diff.")] = False


class _Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change that has been worked out and not yet written."""

    data: bytes
    diff: str
    places: int
    charset: str


def run(params: EditParams, context: Context) -> Outcome:
    """Change the file.

    Raises:
        BadArgument: an edit cannot mean anything, or its text has no form in the file's charset.
        ChangedMeanwhile: the file is not the one ``base_sha256`` tells of, or somebody changed it during the call.
        ToolError: an edit does not match, the file is not text, or the system refused. The file is as it was.
    """
    path = resolve(params.path, context.cwd)
    _require_unicode(params.edits)
    try:
        with replace.turn(path) as real:
            data, seen = _load(real, path)
            replace.require_hash(seen.sha256, params.base_sha256, path)
            change = _change(data, params.edits, show(path))
            if not params.dry_run:
                replace.put(real, change.data, seen)
    except OSError as error:
        raise refusal("edit", path, error) from error
    return _report(path, change, context, dry=params.dry_run)


def _require_unicode(edits: list[Edit]) -> None:
    for number, edit in enumerate(edits):
        for field, value in (("oldText", edit.old_text), ("newText", edit.new_text)):
            try:
                value.encode()
            except UnicodeEncodeError as error:
                received = f"the lone surrogate \\u{ord(value[error.start]):04x} at character {error.start}"
                raise BadArgument(f"edits[{number}].{field}", "valid Unicode", received) from None


def _load(real: Path, path: Path) -> tuple[bytes, replace.Seen]:
    descriptor, status = files.open_regular(real)
    try:
        data = files.read_up_to(descriptor, _LARGEST + 1) if status.st_size <= _LARGEST else b""
    finally:
        os.close(descriptor)
    if status.st_size > _LARGEST or len(data) > _LARGEST:
        raise ToolError(
            f"{show(path)} is too large to edit ({human_size(max(status.st_size, len(data)))}; at most"
            f" {human_size(_LARGEST)}); nothing was changed.",
            hint="Use bash with sed.",
        )
    return data, replace.seen(status, hashlib.sha256(data).hexdigest())


def _change(data: bytes, edits: list[Edit], shown: str) -> _Change:
    from a2mcp.host.textdiff import unified  # noqa: PLC0415 - difflib is not needed until a file is changed

    document = textfile.decode(data)
    if document is None:
        raise ToolError(f"{shown} is binary, not text; nothing was changed.", hint="Use bash for binary files.")
    if not document.encoding.exact:
        raise ToolError(
            f"{shown} is not UTF-8, and as {document.encoding.charset} it cannot be written back byte for byte; nothing"
            " was changed.",
            hint="Convert it with iconv first.",
        )
    view = textedit.View(document.text)
    wanted = [textedit.Replacement(edit.old_text, edit.new_text, edit.all) for edit in edits]
    splices = textedit.plan(view, wanted, shown)
    try:
        changed = textfile.encode(textedit.apply(view, splices), document.encoding)
    except UnicodeEncodeError:
        raise _no_such_character(edits, document.encoding) from None
    diff = unified(view.text, textedit.apply_to_view(view, splices), splices, shown)
    return _Change(data=changed, diff=diff, places=len(splices), charset=document.encoding.label)


def _no_such_character(edits: list[Edit], encoding: textfile.Encoding) -> BadArgument:
    """Find which edit brings in the character that the file's charset does not have."""
    number, char = next(
        (number, char)
        for number, edit in enumerate(edits)
        for char in edit.new_text
        if not textfile.can_encode(char, encoding)
    )
    return BadArgument(
        f"edits[{number}].newText",
        f"characters that the file's charset, {encoding.label}, has",
        f"'{char}' (U+{ord(char):04X})",
        hint="Nothing was changed. Use other characters, or convert the file with iconv first.",
    )


def _report(path: Path, change: _Change, context: Context, *, dry: bool) -> Result:
    digest = hashlib.sha256(change.data).hexdigest()
    places = f"{change.places} place" + ("s" if change.places != 1 else "")
    verb = "Would change" if dry else "Changed"
    head = f"{verb} {places} in {show(path)} ({change.charset}), sha256 {'would be' if dry else 'is now'} {digest}."
    diff = clip_middle(change.diff, context.limits.output_bytes, read_with="read")
    return text(
        f"{head}\n{diff}",
        structured={
            "path": show(path),
            "bytes": len(change.data),
            "sha256": digest,
            "changes": change.places,
            "written": not dry,
            "diff": diff,
        },
    )


TOOL: Final = Tool(
    spec=spec_for(
        EditParams,
        name="edit",
        title="Edit a file",
        description=(
            "Replace text in a file literally. Each oldText must be in the file exactly once (or set all). All edits"
            " are made or none; charset, line ends and permissions stay as they are. Returns a unified diff."
        ),
        tier=Tier.WRITE,
        output_schema=members(path=TEXT, bytes=NUMBER, sha256=TEXT, changes=NUMBER, written=FLAG, diff=TEXT),
    ),
    params=EditParams,
    run=run,
)
