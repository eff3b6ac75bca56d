"""The XML that WebDAV clients read (RFC 4918). Knows no files: what to describe is given."""

from __future__ import annotations

import html
import re
import secrets
from email.utils import formatdate
from typing import TYPE_CHECKING, Final

from a2mcp.protocol.response import Response
from a2mcp.xfer.page import valid
from a2mcp.xfer.target import href

if TYPE_CHECKING:
    from a2mcp.xfer.listing import Entry
    from a2mcp.xfer.root import Parts

XML: Final = "application/xml; charset=utf-8"
_HEAD: Final = '<?xml version="1.0" encoding="utf-8"?>\n'
_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


def multistatus(described: list[tuple[Parts, Entry]]) -> Response:
    """Answer PROPFIND: each thing with the properties that there are."""
    inner = "".join(_response(parts, entry) for parts, entry in described)
    return _xml(207, f'<D:multistatus xmlns:D="DAV:">{inner}</D:multistatus>')


def refused_properties(where: str) -> Response:
    """Answer PROPPATCH: no property can be set."""
    propstat = "<D:propstat><D:prop/><D:status>HTTP/1.1 403 Forbidden</D:status></D:propstat>"
    inner = f"<D:response><D:href>{html.escape(where)}</D:href>{propstat}</D:response>"
    return _xml(207, f'<D:multistatus xmlns:D="DAV:">{inner}</D:multistatus>')


def lock(where: str) -> Response:
    """Answer LOCK with a token that stands for nothing.

    Clients that write only what they have locked need one. What a lock is for holds without it: a file that is not
    empty is not overwritten.
    """
    token = f"opaquelocktoken:{secrets.token_hex(16)}"
    inner = (
        "<D:locktype><D:write/></D:locktype><D:lockscope><D:exclusive/></D:lockscope><D:depth>0</D:depth>"
        f"<D:timeout>Second-3600</D:timeout><D:locktoken><D:href>{token}</D:href></D:locktoken>"
        f"<D:lockroot><D:href>{html.escape(where)}</D:href></D:lockroot>"
    )
    found = f"<D:lockdiscovery><D:activelock>{inner}</D:activelock></D:lockdiscovery>"
    return _xml(200, f'<D:prop xmlns:D="DAV:">{found}</D:prop>', (("Lock-Token", f"<{token}>"),))


def _response(parts: Parts, entry: Entry) -> str:
    where = html.escape(href(parts, folder=entry.is_folder))
    name = html.escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", valid(entry.name)))
    kind = "<D:resourcetype><D:collection/></D:resourcetype>"
    if not entry.is_folder:
        kind = f"<D:getcontentlength>{entry.size}</D:getcontentlength><D:resourcetype/>"
    modified = formatdate(max(0, entry.mtime) // 1000, usegmt=True)
    return (
        f"<D:response><D:href>{where}</D:href><D:propstat><D:prop><D:displayname>{name}</D:displayname>"
        f"<D:getlastmodified>{modified}</D:getlastmodified>{kind}</D:prop>"
        "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    )


def _xml(status: int, inner: str, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    return Response(status, f"{_HEAD}{inner}\n".encode(), headers, content_type=XML)
