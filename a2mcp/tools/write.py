"""The tool ``write``: a whole file at once, made with its folders or replaced.

Does not know how a file is replaced safely: ``a2mcp/host/replace.py`` does.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from a2mcp import files
from a2mcp.errors import BadArgument
from a2mcp.host import replace
from a2mcp.host.paths import refusal, resolve, show
from a2mcp.tools.outputs import FLAG, NUMBER, TEXT, members
from a2mcp.tools.result import Outcome, text
from a2mcp.tools.schema import spec_for
from a2mcp.tools.spec import Tier, Tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2mcp.tools.context import Context

BaseHash = (
    Annotated[
        str,
        msgspec.Meta(
            description="sha256 of the file as you read it; if the file is another one by now, nothing is written.",
            pattern="^[0-9a-fA-F]{64}$",
        ),
    ]
    | None
)


class WriteParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to write where."""

    path: Annotated[str, msgspec.Meta(description="The file: absolute, ~/…, file://…, or relative.")]
    content: Annotated[str, msgspec.Meta(description="All of its new content; written as UTF-8, exactly as given.")]
    base_sha256: BaseHash = None


def run(params: WriteParams, context: Context) -> Outcome:
    """Give the file its new content.

    Raises:
        BadArgument: the content is not valid Unicode, or the path names a folder.
        ChangedMeanwhile: the file is not the one ``base_sha256`` tells of.
        ToolError: the system refused; everything is as it was.
    """
    if params.path.endswith("/"):
        raise BadArgument("path", "a file", f"'{show(params.path)}', which names a folder")
    path = resolve(params.path, context.cwd)
    data = _encoded(params.content)
    try:
        with replace.turn(path) as real, _folders(real.parent):
            before = _before(real, params.base_sha256, path)
            made = not real.exists()
            replace.put(real, data, before)
    except OSError as error:
        raise refusal("write", path, error) from error
    digest = hashlib.sha256(data).hexdigest()
    verb = "Made" if made else "Wrote"
    return text(
        f"{verb} {show(path)}: {len(data)} bytes, sha256 {digest}.",
        structured={"path": show(path), "bytes": len(data), "sha256": digest, "created": made},
    )


def _encoded(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        received = f"the lone surrogate \\u{ord(content[error.start]):04x} at character {error.start}"
        raise BadArgument("content", "valid Unicode", received) from None


def _before(real: Path, wanted: str | None, path: Path) -> replace.Seen | None:
    """The file as it is, looked at only when the caller says what it should be."""
    if wanted is None:
        return None
    try:
        found = replace.look(real)
    except FileNotFoundError:
        found = None
    replace.require_hash(found.sha256 if found else None, wanted, path)
    return found


@contextlib.contextmanager
def _folders(folder: Path) -> Iterator[None]:
    """Make the missing folders, and take them away again if what follows fails."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    made: list[Path] = []
    try:
        for each in reversed(missing):
            with contextlib.suppress(FileExistsError):
                each.mkdir()
                made.append(each)
        yield
    except BaseException:
        # One that somebody else has put a file into by now is not empty, and stays.
        with contextlib.suppress(OSError):
            for each in reversed(made):
                each.rmdir()
        raise
    for each in made:
        files.sync_folder(each.parent)


TOOL: Final = Tool(
    spec=spec_for(
        WriteParams,
        name="write",
        title="Write a file",
        description=(
            "Make a file or replace all of its content, at once or not at all. Missing folders are made; permissions"
            " stay; a symbolic link is followed. Returns path, bytes and the new sha256. To change a part of a file,"
            " use edit."
        ),
        tier=Tier.WRITE,
        idempotent=True,
        output_schema=members(path=TEXT, bytes=NUMBER, sha256=TEXT, created=FLAG),
    ),
    params=WriteParams,
    run=run,
)
