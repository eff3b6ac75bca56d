"""The target of a request: it goes where its bytes say, undecoded, and below a share it names nothing outside.

An input is a target; with a space in it, a method and a target.
"""

from __future__ import annotations

import contextlib
import os.path

from waitress.adjustments import Adjustments
from waitress.parser import ParsingError

from a2mcp.errors import FileRefusal
from a2mcp.http.routes import BRIDGE, RESERVED, route_for
from a2mcp.http.server.heads import HeadCache
from a2mcp.xfer import target

_ADJUSTMENTS = Adjustments()
_ROOT = "/srv/share"


def check(data: bytes) -> None:
    """Fail unless the target is refused, or leads where its bytes say."""
    method, space, given = data.partition(b" ")
    if not space:
        method, given = b"GET", data
    if b"\r\n" in data:
        return  # There the target has ended.
    try:
        head = HeadCache(_ADJUSTMENTS).parse(method + b" " + given + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").head
    except ParsingError:
        return
    assert head.raw_path.startswith("/") or head.command in ("OPTIONS", "CONNECT")
    assert not any(character <= " " or character == "\x7f" for character in head.raw_path), "no target has that"
    assert head.raw_path.encode("latin-1") in given or head.raw_path == "/", "it was not sent so"
    name = route_for(head.raw_path).name
    assert name == _expected(head.raw_path)
    if name == "xfer":
        _stays_inside(head.raw_path)
    _leads_inside(head.raw_path)


def _expected(path: str) -> str:
    """Which route it is, by comparing whole components as they stand."""
    first = path.split("/")[1] if path.startswith("/") else None
    for route in RESERVED:
        reserved = route.path.strip("/")
        if path == route.path or (route.subtree and first == reserved and path.startswith(f"/{reserved}/")):
            return route.name
    return BRIDGE.name


def _stays_inside(path: str) -> None:
    try:
        parts, folder = target.split(path)
    except FileRefusal:
        return
    _is_below(parts)
    back, as_folder = target.split(target.href(parts, folder=folder))
    assert back == parts
    assert as_folder is (folder or not parts)


def _leads_inside(path: str) -> None:
    for url in (path, f"http://127.0.0.1{path}", f"http://[{path}"):
        with contextlib.suppress(FileRefusal):
            _is_below(target.destination(url))


def _is_below(parts: tuple[str, ...]) -> None:
    assert not {"", ".", ".."} & set(parts)
    assert not any("/" in part or "\0" in part for part in parts)
    assert os.path.normpath("/".join([_ROOT, *parts])) == "/".join([_ROOT, *parts])
