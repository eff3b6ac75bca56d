"""A file as a response: whole or in ranges, from the page cache, and ended when the share is."""

from __future__ import annotations

import os
import secrets
from mimetypes import guess_type
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from a2mcp.protocol.response import FilePart, Headers, Response
from a2mcp.xfer import conditions, ranges
from a2mcp.xfer.root import RootClosed

if TYPE_CHECKING:
    from a2mcp.xfer.request import Request
    from a2mcp.xfer.transfers import Transfer

TEXT: Final = "text/plain; charset=utf-8"
SANDBOX: Final = ("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:")
"""SECURITY: a shared page must not act as if it were one of ours; it is on the same origin."""
TWICE_OF: Final = 4096
"""Bytes of a file below which the framing of several ranges may outweigh it."""
_SNIFFED: Final = 4096
_PDF: Final = "application/pdf"


class Download:
    """An open file that is being sent in one or more parts; whoever sends calls ``close`` once for each."""

    def __init__(self, fd: int, asked: Request, total: int) -> None:
        self._fd = fd
        self._asked = asked
        self._transfer: Transfer | None = None
        self.total = total
        """Bytes that are to be sent."""
        self.holders = 1

    def fileno(self) -> int:
        """The descriptor.

        Raises:
            RootClosed: the share is over, and with it this; or the operator has ended this.
        """
        if self._ended:
            raise RootClosed
        return self._fd

    def sent(self, count: int) -> None:
        """Count what was sent. What nothing is sent of, as for HEAD, is no transfer."""
        if self._transfer is None:
            self._transfer = self._asked.transfers.begin("/".join(self._asked.shown), "download", self.total)
        self._transfer.moved += count

    def overdue(self, still_s: float) -> bool:
        """Whether to give up on a reader who has taken nothing for so many seconds."""
        return self._ended or still_s > self._asked.options.stall_s

    def close(self) -> None:
        """Let go of it once."""
        self.holders -= 1
        if not self.holders:
            os.close(self._fd)
            if self._transfer is not None:
                self._asked.transfers.end(self._transfer)

    @property
    def _ended(self) -> bool:
        return self._asked.share.closed or (self._transfer is not None and self._transfer.stopped)


def answer(asked: Request, fd: int, found: os.stat_result) -> Response:
    """Answer with an open file, or with what the conditions and ranges make of it; takes over the descriptor."""
    now = conditions.validators(found)
    headers = (*now.headers, ("Accept-Ranges", "bytes"), ("Cache-Control", "no-cache"))
    try:
        status = conditions.verdict(asked.header, now)
        if status == 200:
            response = _content(asked, fd, found.st_size, headers, counts=conditions.range_counts(asked.header, now))
        else:
            response = Response(status, headers=headers)
    except BaseException:
        os.close(fd)
        raise
    if not response.parts:
        os.close(fd)
    return response


def made(asked: Request, fd: int, name: str, kind: str) -> Response:
    """Answer with a file that was made for this request; takes over the descriptor."""
    size = os.fstat(fd).st_size
    part = FilePart(Download(fd, asked, size), 0, size)
    headers = (("Content-Disposition", disposition(name, kind="attachment")), ("Cache-Control", "no-store"), SANDBOX)
    return Response(200, headers=headers, content_type=kind, parts=(part,))


def _content(asked: Request, fd: int, size: int, headers: Headers, *, counts: bool) -> Response:
    name = asked.shown[-1]
    kind = content_type(name, fd)
    # A browser that shows such files itself does not do so in a sandbox.
    shown = "attachment" if kind == _PDF else "inline"
    headers = (*headers, ("Content-Disposition", disposition(name, kind=shown)), SANDBOX)
    try:
        pieces = ranges.parse(asked.header("RANGE"), size) if counts and asked.method == "GET" else ()
    except ranges.Unsatisfiable:
        return Response(416, headers=(*headers, ("Content-Range", f"bytes */{size}")))
    download = Download(fd, asked, size)
    if len(pieces) > 1:
        several = _several(download, pieces, size, headers, kind)
        if several.length <= max(2 * size, TWICE_OF):
            return several
        pieces, download.holders, download.total = (), 1, size
    if pieces:
        download.total = pieces[0].length
        part = FilePart(download, pieces[0].start, pieces[0].length)
        return Response(206, headers=(*headers, _content_range(pieces[0], size)), content_type=kind, parts=(part,))
    whole = (FilePart(download, 0, size),) if size else ()
    return Response(200, headers=headers, content_type=kind, parts=whole)


def _several(download: Download, pieces: tuple[ranges.Range, ...], size: int, headers: Headers, kind: str) -> Response:
    boundary = secrets.token_hex(12)
    parts: list[bytes | FilePart] = []
    for piece in pieces:
        name, value = _content_range(piece, size)
        parts.append(f"--{boundary}\r\nContent-Type: {kind}\r\n{name}: {value}\r\n\r\n".encode())
        parts.append(FilePart(download, piece.start, piece.length))
        parts.append(b"\r\n")
    parts.append(f"--{boundary}--\r\n".encode())
    download.holders = len(pieces)
    download.total = sum(piece.length for piece in pieces)
    multipart = f"multipart/byteranges; boundary={boundary}"
    return Response(206, headers=headers, content_type=multipart, parts=tuple(parts))


def _content_range(piece: ranges.Range, size: int) -> tuple[str, str]:
    return ("Content-Range", f"bytes {piece.start}-{piece.end - 1}/{size}")


def content_type(name: str, fd: int) -> str:
    """Guess what a file is, from its name and else from its first bytes; text that is UTF-8 says so."""
    kind, coding = guess_type(name, strict=False)
    if coding is not None:
        return "application/octet-stream"
    if kind is not None and not kind.startswith("text/"):
        return kind
    start = os.pread(fd, _SNIFFED, 0)
    if not _is_utf8(start):
        return kind or "application/octet-stream"
    return f"{kind or 'text/plain'}; charset=utf-8"


def _is_utf8(start: bytes) -> bool:
    if b"\0" in start:
        return False
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character may be cut in two at the end of what was read.
        return len(start) == _SNIFFED and error.start >= _SNIFFED - 3
    return True


def disposition(name: str, *, kind: str = "inline") -> str:
    """Write a ``Content-Disposition`` that any client reads: an ASCII name, and the real one (RFC 6266)."""
    plain = "".join(c if " " <= c <= "~" and c not in '"\\%' else "_" for c in name)
    exact = quote(os.fsencode(name).decode("utf-8", "replace"), safe="!#$&+^`|~")
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{exact}"
