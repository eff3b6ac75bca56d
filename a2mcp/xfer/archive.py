"""A folder as one zip, made in a file without a name before any of it is sent. Off unless ``xfer.zip`` is set."""

from __future__ import annotations

import os
import tempfile
import time
import zipfile
from typing import TYPE_CHECKING, Final

from a2mcp.errors import FileRefusal
from a2mcp.xfer import listing
from a2mcp.xfer.page import valid
from a2mcp.xfer.root import RootClosed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2mcp.xfer.root import Parts
    from a2mcp.xfer.share import Share

BYTES: Final = 4 << 30
"""Of the files that go into one; larger folders are downloaded file by file."""
_PIECE: Final = 1 << 18
_DEPTH: Final = 64


def packed(share: Share, parts: Parts) -> int:
    """Write the archive; its descriptor, which the caller closes.

    Raises:
        FileRefusal: 413 where there is too much.
        OSError: it could not be written.
    """
    left = BYTES
    with tempfile.TemporaryFile() as kept:
        with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for inner in _files(share, parts):
                left = _add(archive, share, inner, valid("/".join(inner[len(parts) :])), left)
        return os.dup(kept.fileno())


def pieces(fd: int, size: int, share: Share) -> Iterator[bytes]:
    """Read ``size`` bytes of a file, as long as the share is up.

    Raises:
        RootClosed: it is not.
        OSError: the file cannot be read.
    """
    at = 0
    while at < size and (piece := os.pread(fd, min(_PIECE, size - at), at)):
        if share.closed:
            raise RootClosed
        at += len(piece)
        yield piece


def _files(share: Share, parts: Parts, depth: int = 0) -> Iterator[Parts]:
    """Every file below a folder; links to folders are not followed, which could go round in circles."""
    for entry in listing.read(share.root, parts, count=False).entries:
        inner = (*parts, entry.name)
        if entry.path_type == "Dir" and depth < _DEPTH:
            yield from _files(share, inner, depth + 1)
        elif not entry.is_folder:
            yield inner


def _add(archive: zipfile.ZipFile, share: Share, inner: Parts, name: str, left: int) -> int:
    try:
        fd, found = share.root.open_file(inner)
    except RootClosed:
        raise
    except OSError:
        return left  # Gone, or not for us to read: the others are still wanted.
    try:
        left -= found.st_size
        if left < 0:
            raise FileRefusal(413, f"Content Too Large: the folder holds more than {BYTES} bytes")
        info = zipfile.ZipInfo(name, max(time.gmtime(found.st_mtime)[:6], (1980, 1, 1, 0, 0, 0)))
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (found.st_mode & 0xFFFF) << 16
        with archive.open(info, "w", force_zip64=found.st_size > _PIECE) as into:
            for piece in pieces(fd, found.st_size, share):
                into.write(piece)
    finally:
        os.close(fd)
    return left
