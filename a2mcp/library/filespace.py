"""Files of this machine as resources: ``file:///…``, by the rules of the tool ``read``.

The same paths, the same refusals and never a wait for a pipe; but the content as it is, without numbers: text where it
is text, else base64. Whole or not at all, since a part of a file would pass for the file.
"""

from __future__ import annotations

import os
from binascii import b2a_base64
from typing import TYPE_CHECKING, Final

from a2mcp import files
from a2mcp.errors import NoSuchResource, ToolError
from a2mcp.host import kinds, textfile
from a2mcp.host.paths import refusal, resolve, show
from a2mcp.library.spec import TemplateSpec
from a2mcp.tools.output import human_size
from a2mcp.tools.result import ResourceContents

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.tools.context import Context

SCHEME: Final = "file:/"
MOST: Final = 4 * 1024 * 1024
"""Bytes of a file; the tool ``read`` shows parts of larger ones."""
ENTRIES: Final = 1000
_MIME_TYPES: Final = {
    "PNG image": "image/png",
    "JPEG image": "image/jpeg",
    "GIF image": "image/gif",
    "WebP image": "image/webp",
    "PDF document": "application/pdf",
    "gzip data": "application/gzip",
    "WAV audio": "audio/wav",
    "MP3 audio": "audio/mpeg",
}

TEMPLATE: Final = TemplateSpec(
    uri_template="file:///{+path}",
    name="file",
    title="A file or folder",
    description=f"Any file the daemon's user may read, of at most {human_size(MOST)}: as text, else base64.",
)


def read(uri: str, context: Context) -> ResourceContents:
    """Read a file, or list a folder.

    Raises:
        NoSuchResource: there is none.
        ToolError: it cannot be read.
    """
    path = resolve(uri, context.cwd, field="uri")
    try:
        data = _content(path)
    except IsADirectoryError:
        return _folder(uri, path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoSuchResource(uri) from error
    except OSError as error:
        raise refusal("read", path, error) from error
    document = textfile.decode(data)
    if document is not None:
        return ResourceContents(uri=uri, mime_type="text/plain", text=document.text)
    return ResourceContents(uri=uri, mime_type=_mime_type(data), blob=b2a_base64(data, newline=False).decode())


def _content(path: Path) -> bytes:
    descriptor, status = files.open_regular(path)
    try:
        # One byte more tells whether there is more: a file in /proc has no size.
        data = files.read_up_to(descriptor, MOST + 1) if status.st_size <= MOST else b""
    finally:
        os.close(descriptor)
    if status.st_size > MOST or len(data) > MOST:
        raise ToolError(
            f"{show(path)} is larger than {human_size(MOST)}.", hint="The tool read shows a part of it with offset."
        )
    return data


def _folder(uri: str, path: Path) -> ResourceContents:
    from a2mcp.host.listing import listing  # noqa: PLC0415 - keeps the way of a file short

    try:
        found = listing(path, 1, ENTRIES)
    except OSError as error:
        raise refusal("list", path, error) from error
    left = found.total - len(found.lines)
    more = [f"… {left} more; the tool read lists them with offset"] if left else []
    return ResourceContents(uri=uri, mime_type="inode/directory", text="\n".join((*found.lines, *more)))


def _mime_type(data: bytes) -> str:
    return _MIME_TYPES.get(kinds.describe(data[: kinds.HEAD_BYTES]), "application/octet-stream")
