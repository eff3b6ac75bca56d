"""A folder as a page for people, as JSON in dufs's shape, and as lines.

The page is one response: its style and script are inside it and named by hash in its policy, so that a file name that
got past the escaping could still do nothing. It is read and sorted without the script, which only adds uploading.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.protocol.response import Response
from a2mcp.xfer.download import TEXT
from a2mcp.xfer.share import PREFIX
from a2mcp.xfer.target import href

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2mcp.xfer.listing import Entry, Listing
    from a2mcp.xfer.request import Request

_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of a name around (``exe.txt`` for ``txt.exe``)."""
_FRESH: Final = ("Cache-Control", "no-store")
_COLUMNS: Final = (("name", "Name"), ("size", "Size"), ("mtime", "Modified (UTC)"))


def as_page(asked: Request, listing: Listing, *, there: bool) -> Response:
    """Write the page."""
    style, script = _asset("page.css"), _asset("page.js")
    title = "/".join(readable(part) for part in (asked.share.path.name, *asked.shown)) or "/"
    body = "".join(
        (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">',
            f"<title>{html.escape(title)}</title><style>{style}</style></head>",
            f'<body data-base="{html.escape(href(asked.shown, folder=True))}"><main>',
            f'<nav aria-label="Folder"><h1>{_crumbs(asked)}</h1></nav>',
            _UPLOAD,
            _table(asked, listing),
            _notes(listing, there=there),
            f"</main><script>{script}</script></body></html>\n",
        )
    )
    headers = (
        _FRESH,
        ("Content-Security-Policy", _policy(style, script)),
        ("Referrer-Policy", "no-referrer"),
        ("Content-Disposition", "inline"),
    )
    return Response(200, body.encode(), headers, content_type="text/html; charset=utf-8")


def as_json(asked: Request, listing: Listing, *, there: bool) -> Response:
    """Write the listing as dufs does, so that what reads that reads this."""
    document: dict[str, Any] = {
        "href": "/" + "/".join(readable(part) for part in asked.shown),
        "kind": "Index",
        "uri_prefix": PREFIX + "/",
        "allow_upload": True,
        "allow_delete": False,
        "allow_search": False,
        "allow_archive": asked.options.zip,
        "dir_exists": there,
        "auth": True,
        "user": None,
        "paths": [msgspec.structs.replace(entry, name=valid(entry.name)) for entry in listing.entries],
    }
    if listing.cut:
        document["cut"] = True
    return Response(200, msgspec.json.format(msgspec.json.encode(document)), (_FRESH,))


def file_json(name: str, found: os.stat_result) -> bytes:
    """Describe one file, as dufs does."""
    described = {
        "path_type": "File",
        "name": valid(name),
        "mtime": found.st_mtime_ns // 1_000_000,
        "size": found.st_size,
    }
    return msgspec.json.format(msgspec.json.encode(described))


def as_lines(names: list[str]) -> Response:
    """Write the names, one on each line."""
    return Response(200, "".join(f"{valid(name)}\n" for name in names).encode(), (_FRESH,), content_type=TEXT)


def valid(name: str) -> str:
    """Write a name as text: what is not UTF-8 in it becomes U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")


def readable(name: str) -> str:
    """Write a name so that a person sees where it begins and ends."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", valid(name))


_UPLOAD: Final = (
    '<section id="upload" aria-label="Upload" hidden>'
    '<p><label class="button"><input type="file" id="files" multiple>Upload files</label>'
    '<span class="hint"> or drop them anywhere on this page</span></p>'
    '<ul id="transfers" aria-live="polite"></ul></section>'
)


def _crumbs(asked: Request) -> str:
    """The way from the share to this folder, which itself is no link."""
    names = (asked.share.path.name or "/", *asked.shown)
    shown = [html.escape(readable(name)) for name in names]
    links = [
        f'<a href="{html.escape(href(asked.shown[:depth], folder=True))}">{name}</a>'
        for depth, name in enumerate(shown[:-1])
    ]
    return '<span class="slash"> / </span>'.join([*links, f'<span aria-current="page">{shown[-1]}</span>'])


def _table(asked: Request, listing: Listing) -> str:
    by, descending = order_of(asked.query)
    head = "".join(_heading(key, label, by=by, descending=descending) for key, label in _COLUMNS)
    rows = "".join(_rows(asked, listing))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _heading(key: str, label: str, *, by: str, descending: bool) -> str:
    state = f' aria-sort="{"descending" if descending else "ascending"}"' if key == by else ""
    order = "asc" if key != by or descending else "desc"
    return f'<th class="{key}" scope="col"{state}><a href="?sort={key}&amp;order={order}">{label}</a></th>'


def _rows(asked: Request, listing: Listing) -> Iterator[str]:
    if asked.shown:
        above = href(asked.shown[:-1], folder=True)
        yield f'<tr class="up"><td class="name" colspan="3"><a href="{above}">..</a></td></tr>'
    for entry in listing.entries:
        yield _row(asked, entry)


def _row(asked: Request, entry: Entry) -> str:
    where = html.escape(href((*asked.shown, entry.name), folder=entry.is_folder))
    name = html.escape(readable(entry.name))
    moment = datetime.fromtimestamp(max(0, entry.mtime) / 1000, UTC)
    size = f"{entry.size} item{'' if entry.size == 1 else 's'}" if entry.is_folder else human(entry.size)
    exact = "" if entry.is_folder else f' title="{entry.size} bytes"'
    kind = "folder" if entry.is_folder else "file"
    return (
        f'<tr class="{kind}"><td class="name"><a href="{where}">{name}{"/" if entry.is_folder else ""}</a></td>'
        f'<td class="size"{exact}>{size}</td>'
        f'<td class="mtime"><time datetime="{moment:%Y-%m-%dT%H:%M:%SZ}">{moment:%Y-%m-%d %H:%M}</time></td></tr>'
    )


def _notes(listing: Listing, *, there: bool) -> str:
    if not there:
        return '<p class="note">This folder does not exist yet. An upload makes it.</p>'
    if listing.cut:
        return (
            f'<p class="note">Only {len(listing.entries)} of the names are shown. '
            '<a href="?simple">All names, one on each line</a></p>'
        )
    return "" if listing.entries else '<p class="note">This folder is empty.</p>'


def order_of(query: dict[str, str]) -> tuple[str, bool]:
    """By what a listing is to be sorted, and whether from the last to the first."""
    by = query.get("sort", "name")
    return (by if by in ("name", "mtime", "size") else "name"), query.get("order") == "desc"


def human(size: int) -> str:
    """Write a size in at most four digits."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"


@cache
def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


@cache
def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
