"""What each method does: a request in, a response out, as dufs answers where only uploads are allowed.

Every function here may wait for a disk, so none runs in the loop. The bodies of uploads do not come through here:
``upload`` says where one goes.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from a2mcp.errors import FileRefusal
from a2mcp.protocol.response import Response
from a2mcp.xfer import archive, download, listing, page, target, upload, webdav
from a2mcp.xfer.faults import refusal_of
from a2mcp.xfer.request import Request

if TYPE_CHECKING:
    from a2mcp.xfer.root import Parts

LONG_JOBS: Final = 2
"""Hashes, archives and copies at a time: the others in the pool stay free for what is quick."""
LISTINGS: Final = 1
"""Folders listed at a time: that is computing, and each thread that computes makes the loop wait for its turn."""

_ALLOW: Final = "GET, HEAD, PUT, OPTIONS, PATCH, PROPFIND, PROPPATCH, MKCOL, COPY, LOCK, UNLOCK"
_ALLOW_FILE: Final = "GET, HEAD, OPTIONS, PROPFIND"
_DAV: Final = ("DAV", "1, 2, 3")
_long = threading.BoundedSemaphore(LONG_JOBS)
_listings = threading.BoundedSemaphore(LISTINGS)


def answer(asked: Request) -> Response:
    """Answer a request that has no body, or one whose body does not count.

    Raises:
        FileRefusal: what is refused, and why.
    """
    method = _METHODS.get(asked.method)
    if method is None:
        raise FileRefusal(405, "Method Not Allowed", headers=(("Allow", _allowed(asked)),))
    if asked.share.is_file and asked.method in _WRITING:
        raise FileRefusal(403, "Forbidden: one file is shared, and it is not to be written")
    try:
        return method(asked)
    except OSError as error:
        raise refusal_of(error) from error


# --- reading ----------------------------------------------------------------------------------------------------------


def _get(asked: Request) -> Response:
    root = asked.share.root
    try:
        found = root.status(asked.parts, links=asked.links)
    except FileNotFoundError:
        if asked.folder and not asked.share.is_file:
            return _listed(asked, listing.Listing(), there=False)
        raise
    if stat.S_ISDIR(found.st_mode):
        return _folder(asked)
    if asked.folder:
        raise FileRefusal(404, "Not Found")
    if "json" in asked.query:
        return Response(200, page.file_json(asked.shown[-1], found))
    if "hash" in asked.query:
        return _hash(asked)
    fd, found = root.open_file(asked.parts, links=asked.links)
    return download.answer(asked, fd, found)


def _folder(asked: Request) -> Response:
    if "zip" in asked.query:
        return _zip(asked)
    with _listings:
        if "simple" in asked.query:
            return page.as_lines(listing.names(asked.share.root, asked.parts))
        by, descending = page.order_of(asked.query)
        found = listing.read(asked.share.root, asked.parts)
        return _listed(asked, listing.ordered(found, by, descending=descending), there=True)


def _listed(asked: Request, found: listing.Listing, *, there: bool) -> Response:
    if "json" in asked.query:
        return page.as_json(asked, found, there=there)
    if "simple" in asked.query:
        return page.as_lines([])
    return page.as_page(asked, found, there=there)


def _hash(asked: Request) -> Response:
    if not asked.options.hash:
        raise FileRefusal(403, "Forbidden: the setting 'xfer.hash' is off")
    return _alone(_hashed, asked)


def _hashed(asked: Request) -> Response:
    fd, found = asked.share.root.open_file(asked.parts, links=asked.links)
    digest = hashlib.sha256()
    try:
        for piece in archive.pieces(fd, found.st_size, asked.share):
            digest.update(piece)
    finally:
        os.close(fd)
    return Response(200, digest.hexdigest().encode(), content_type=download.TEXT)


def _zip(asked: Request) -> Response:
    if not asked.options.zip:
        raise FileRefusal(404, "Not Found: the setting 'xfer.zip' is off")
    return _alone(_zipped, asked)


def _zipped(asked: Request) -> Response:
    fd = archive.packed(asked.share, asked.parts)
    name = (asked.shown[-1] if asked.shown else asked.share.path.name or "root") + ".zip"
    return download.made(asked, fd, name, "application/zip")


def _alone(job: Callable[[Request], Response], asked: Request) -> Response:
    """Do one of the long jobs, if not too many are being done."""
    if not _long.acquire(blocking=False):
        raise FileRefusal(503, "Service Unavailable: too many long requests at once", headers=(("Retry-After", "5"),))
    try:
        return job(asked)
    finally:
        _long.release()


# --- WebDAV -----------------------------------------------------------------------------------------------------------


def _options(asked: Request) -> Response:
    return Response(200, headers=(("Allow", _allowed(asked)), _DAV))


def _propfind(asked: Request) -> Response:
    depth = asked.header("DEPTH") or "1"
    if depth not in ("0", "1"):
        raise FileRefusal(400, "Bad Request: Depth must be 0 or 1")
    found = asked.share.root.status(asked.parts, links=asked.links)
    is_folder = stat.S_ISDIR(found.st_mode)
    entry = listing.entry_of(asked.shown[-1] if asked.shown else asked.share.path.name, found)
    if entry is None or (asked.folder and not is_folder):
        raise FileRefusal(404, "Not Found")
    described = [(asked.shown, entry)]
    if depth == "0" or not is_folder:
        return webdav.multistatus(described)
    with _listings:
        inside = listing.ordered(listing.read(asked.share.root, asked.parts, count=False), "name", descending=False)
        described += [((*asked.shown, child.name), child) for child in inside.entries]
        return webdav.multistatus(described)


def _proppatch(asked: Request) -> Response:
    return webdav.refused_properties(_existing_file(asked))


def _lock(asked: Request) -> Response:
    return webdav.lock(_existing_file(asked))


def _unlock(asked: Request) -> Response:
    _existing_file(asked)
    return Response(204)


def _mkcol(asked: Request) -> Response:
    target.check_new_name(asked.parts)
    root = asked.share.root
    try:
        root.status(asked.parts)
    except FileNotFoundError:
        os.close(root.make_folders(asked.parts))
        return Response(201)
    raise FileRefusal(405, "Method Not Allowed: Already exists", headers=(("Allow", _ALLOW),))


def _copy(asked: Request) -> Response:
    place = target.destination(asked.header("DESTINATION"))
    return _alone(lambda one: _copied(one, place), asked)


def _copied(asked: Request, place: Parts) -> Response:
    fd, found = asked.share.root.open_file(asked.parts)
    copy = upload.New(asked.share.root, place, overwrite=asked.options.overwrite, size=found.st_size)
    try:
        copy.begin()
        for piece in archive.pieces(fd, found.st_size, asked.share):
            copy.write(piece)
        copy.keep()
    finally:
        os.close(fd)
        copy.discard()
    return Response(204)


def _forbidden(_asked: Request) -> Response:
    raise FileRefusal(403, "Forbidden")


def _existing_file(asked: Request) -> str:
    found = asked.share.root.status(asked.parts)
    if not stat.S_ISREG(found.st_mode) or asked.folder:
        raise FileRefusal(403, "Forbidden")
    return target.href(asked.shown, folder=False)


def _allowed(asked: Request) -> str:
    return _ALLOW_FILE if asked.share.is_file else _ALLOW


_WRITING: Final = frozenset({"PUT", "PATCH", "MKCOL", "COPY", "MOVE", "DELETE", "PROPPATCH", "LOCK", "UNLOCK"})
_METHODS: Final[dict[str, Callable[[Request], Response]]] = {
    "GET": _get,
    "HEAD": _get,
    "OPTIONS": _options,
    "PROPFIND": _propfind,
    "PROPPATCH": _proppatch,
    "LOCK": _lock,
    "UNLOCK": _unlock,
    "MKCOL": _mkcol,
    "COPY": _copy,
    "MOVE": _forbidden,
    "DELETE": _forbidden,
}
