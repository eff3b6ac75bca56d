"""The head of a request, parsed strictly, and remembered by its bytes.

A client sends the same head with every call, and parsing it is a pure function of its bytes, so an equal block is
parsed once. What Waitress lets through although two parties could read it differently is refused here.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec
from waitress.parser import HTTPRequestParser, ParsingError, TransferEncodingNotImplemented

if TYPE_CHECKING:
    from waitress.adjustments import Adjustments

_ONCE: Final = frozenset(
    {b"host", b"authorization", b"content-length", b"transfer-encoding", b"origin", b"mcp-session-id", b"content-type"}
)
_WITHOUT_PATH: Final = frozenset({"OPTIONS", "CONNECT"})
"""Methods whose target may be ``*`` or ``host:port``; no route takes such a one."""
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")
"""No target has these (RFC 9112 §3.2), and one reader ends it where another goes on."""
_DIGITS_OF_A_LENGTH: Final = 18
"""More digits of Content-Length than this are no size of anything; ``int`` would refuse 4,300 with a traceback."""

CACHE_ENTRIES: Final = 256
CACHED_BYTES: Final = 2048


class ParsedHead(msgspec.Struct, frozen=True):
    """What a block of header bytes says."""

    command: str
    version: str
    request_uri: str
    raw_path: str
    """The path of the target as it stands there, undecoded."""
    query: str
    authority: str
    """The host of an absolute-form target, or an empty string."""
    headers: dict[str, str]
    connection_close: bool
    expect_continue: bool
    chunked: bool
    content_length: int


class Remembered:
    """A parsed head, and what is found out about it later. Equal bytes share one, in the loop's thread alone."""

    __slots__ = ("allowed_in", "environ", "head", "shows_token")

    def __init__(self, head: ParsedHead) -> None:
        self.head = head
        self.allowed_in = -1
        """The guard's generation in which this head was let in."""
        self.shows_token = False
        """Whether it was let in because of the token."""
        self.environ = _environ_of(head)
        """The part of the WSGI environment that the head decides; to be copied, not changed."""


class HeadCache:
    """Parses heads; remembers the small ones."""

    def __init__(self, adj: Adjustments) -> None:
        self._adj = adj
        self._entries: dict[bytes, Remembered] = {}

    def parse(self, block: bytes) -> Remembered:
        """Parse a block of header bytes, the request line first.

        Raises:
            waitress.parser.ParsingError: what is wrong with it, in words that are safe to answer.
            waitress.parser.TransferEncodingNotImplemented: a coding other than ``chunked``.
        """
        remembered = self._entries.get(block)
        if remembered is None:
            remembered = Remembered(_parse(block, self._adj))
            if len(block) <= CACHED_BYTES:
                if len(self._entries) >= CACHE_ENTRIES:
                    self._entries.clear()
                self._entries[block] = remembered
        return remembered


def _environ_of(head: ParsedHead) -> dict[str, Any]:
    """Write the WSGI environment of a head.

    ``PATH_INFO`` is the path as it stands in the request target, not decoded as PEP 3333 has it: routing looks at what
    was sent, and no route of ours needs a decoded one.
    """
    environ: dict[str, Any] = {
        "REQUEST_METHOD": head.command,
        "SERVER_NAME": "a2mcp",
        "SERVER_PORT": "0",
        "SERVER_PROTOCOL": f"HTTP/{head.version}",
        "SCRIPT_NAME": "",
        "PATH_INFO": head.raw_path,
        "REQUEST_URI": head.request_uri,
        "QUERY_STRING": head.query,
        "wsgi.url_scheme": "http",
        "wsgi.version": (1, 0),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }
    for name, value in head.headers.items():
        environ[name if name in ("CONTENT_LENGTH", "CONTENT_TYPE") else "HTTP_" + name] = value
    return environ


def _parse(block: bytes, adj: Adjustments) -> ParsedHead:
    first, *lines = block.split(b"\r\n")
    if first != first.rstrip():  # Waitress drops what stands behind the version, a bare CR included.
        raise ParsingError("Start line is invalid")
    _check_lines(lines)
    parser: Any = HTTPRequestParser(adj)
    try:
        parser.parse_header(block)
    except ValueError as cause:  # What urlsplit says of half an IPv6 address; Waitress expects UnicodeError only.
        raise ParsingError("Bad URI") from cause
    _check_version(parser)
    raw_path, query, authority = _taken_apart(parser.request_uri, parser.command)
    return ParsedHead(
        command=parser.command,
        version=parser.version,
        request_uri=parser.request_uri,
        raw_path=raw_path,
        query=query,
        authority=authority,
        headers=parser.headers,
        connection_close=parser.connection_close,
        expect_continue=parser.expect_continue,
        chunked=parser.chunked,
        content_length=parser.content_length,
    )


def _check_version(parser: Any) -> None:
    if parser.version not in ("1.0", "1.1"):
        raise ParsingError("HTTP version is not 1.0 or 1.1")
    if parser.version == "1.1" and "HOST" not in parser.headers:
        raise ParsingError("Host is missing")
    if parser.version == "1.0" and "TRANSFER_ENCODING" in parser.headers:
        raise ParsingError("Transfer-Encoding is not of HTTP/1.0")


def _taken_apart(target: str, command: str) -> tuple[str, str, str]:
    """The path, the query and the authority of a request target, each as it stands there."""
    if _CONTROL.search(target):
        raise ParsingError("Bad URI")
    raw_path, _, query = target.partition("#")[0].partition("?")
    scheme, found, rest = raw_path.partition("://")
    authority = ""
    if found and not scheme.startswith("/"):
        authority, slash, path = rest.partition("/")
        raw_path = slash + path or "/"
        if not authority:
            raise ParsingError("Bad URI")
    if not raw_path.startswith("/") and command not in _WITHOUT_PATH:
        raise ParsingError("Bad URI")
    return raw_path, query, authority


def _check_lines(lines: list[bytes]) -> None:
    seen = set()
    for line in lines:
        if line[:1] in (b" ", b"\t"):
            raise ParsingError("A header is folded over two lines")
        name, _, value = line.partition(b":")
        name = name.lower()
        if name in _ONCE and name in seen:
            raise ParsingError(f"{name.decode()} is there twice")
        if name == b"content-length" and len(value.strip()) > _DIGITS_OF_A_LENGTH:
            raise ParsingError("Content-Length is invalid")
        if name == b"transfer-encoding" and value.strip(b" \t").lower() != b"chunked":
            # Waitress takes an empty one for none, which whoever stands between us and the client may not.
            raise TransferEncodingNotImplemented("Transfer-Encoding is not 'chunked'")
        if b"\0" in value:
            raise ParsingError("A header holds a NUL")
        seen.add(name)
    if {b"content-length", b"transfer-encoding"} <= seen:
        raise ParsingError("Content-Length and Transfer-Encoding are both there")
