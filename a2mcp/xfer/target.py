"""The path of a request to components below the share, and back. Decodes once; refuses what could be read twice."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlsplit

from a2mcp.errors import FileRefusal
from a2mcp.files import TEMP_PREFIX
from a2mcp.xfer.share import PREFIX

if TYPE_CHECKING:
    from a2mcp.xfer.root import Parts

TEMP_SUFFIX: Final = ".tmp"

_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def split(raw_path: str) -> tuple[Parts, bool]:
    """Take a raw path apart.

    Args:
        raw_path: as it stands in the request target, undecoded.

    Returns:
        The decoded components below the route, and whether the path ended in a slash.

    Raises:
        FileRefusal: 400 for a path that names nothing below the share, whatever is there.
    """
    inner = raw_path.removeprefix(PREFIX).removeprefix("/")
    if not inner:
        return (), True
    folder = inner.endswith("/")
    pieces = inner.removesuffix("/").split("/")
    return tuple(_component(piece) for piece in pieces), folder


def _component(piece: str) -> str:
    if _BROKEN_ESCAPE.search(piece):
        raise FileRefusal(400, "Invalid Path: a '%' is not followed by two hex digits")
    name = unquote_to_bytes(piece.encode("latin-1"))
    if name in (b"", b".", b".."):
        raise FileRefusal(400, "Invalid Path: a component is empty, '.' or '..'")
    if b"/" in name or b"\0" in name:
        raise FileRefusal(400, "Invalid Path: a component holds an encoded slash or NUL")
    return os.fsdecode(name)


def check_new_name(parts: Parts) -> None:
    """Refuse a name that nobody should have to find in a folder.

    Raises:
        FileRefusal: 400.
    """
    for part in parts:
        if _CONTROL.search(part):
            raise FileRefusal(400, "Invalid Path: a new name must not hold control characters")
        if is_temporary(part):
            raise FileRefusal(400, "Invalid Path: such names are those of unfinished uploads")
        if len(os.fsencode(part)) > 255:  # NAME_MAX everywhere.
            raise FileRefusal(400, "Invalid Path: a name is longer than 255 bytes")


def is_temporary(name: str) -> bool:
    """Whether a name is that of an unfinished upload; such a file is not shown and not served."""
    return name.startswith(TEMP_PREFIX) and name.endswith(TEMP_SUFFIX)


def href(parts: Parts, *, folder: bool) -> str:
    """Write components as an absolute reference under the route."""
    path = "/".join([PREFIX, *(quote(os.fsencode(part), safe="!$()*+,;=:@~") for part in parts)])
    return path + "/" if folder else path


def query(raw: str) -> dict[str, str]:
    """Read a query; the last of equal names counts."""
    return dict(parse_qsl(raw, keep_blank_values=True, errors="replace"))


def destination(value: str | None) -> Parts:
    """The components that a ``Destination`` header names.

    Raises:
        FileRefusal: 400 without a usable one, 403 for one that is elsewhere.
    """
    if not value:
        raise FileRefusal(400, "the header Destination is missing")
    try:
        path = urlsplit(value).path
    except ValueError:
        raise FileRefusal(400, "the header Destination is no URL") from None
    if not (path == PREFIX or path.startswith(PREFIX + "/")):
        raise FileRefusal(403, "Forbidden: the destination is not in the share")
    return split(path)[0]
