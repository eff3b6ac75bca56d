"""The head of a request, parsed strictly, and remembered by its bytes.

A client sends the same head with every call, and parsing it is a pure function of its bytes, so an equal block is
parsed once. What Waitress lets through although two parties could read it differently is refused here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from waitress.parser import HTTPRequestParser, ParsingError

if TYPE_CHECKING:
    from waitress.adjustments import Adjustments

_ONCE: Final = frozenset(
    {b"host", b"authorization", b"content-length", b"transfer-encoding", b"origin", b"mcp-session-id", b"content-type"}
)
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


class HeadCache:
    """Parses heads; remembers the small and plain ones."""

    def __init__(self, adj: Adjustments) -> None:
        self._adj = adj
        self._entries: dict[bytes, ParsedHead] = {}

    def parse(self, block: bytes) -> ParsedHead:
        """Parse a block of header bytes, the request line first.

        Raises:
            waitress.parser.ParsingError: what is wrong with it, in words that are safe to answer.
            waitress.parser.TransferEncodingNotImplemented: a coding other than ``chunked``.
        """
        head = self._entries.get(block)
        if head is None:
            head = _parse(block, self._adj)
            if len(block) <= CACHED_BYTES:
                if len(self._entries) >= CACHE_ENTRIES:
                    self._entries.clear()
                self._entries[block] = head
        return head


def _parse(block: bytes, adj: Adjustments) -> ParsedHead:
    _check_lines(block.split(b"\r\n")[1:])
    parser: Any = HTTPRequestParser(adj)
    parser.parse_header(block)
    if parser.version not in ("1.0", "1.1"):
        raise ParsingError("HTTP version is not 1.0 or 1.1")
    if parser.version == "1.1" and "HOST" not in parser.headers:
        raise ParsingError("Host is missing")
    raw_path, _, query = parser.request_uri.partition("#")[0].partition("?")
    scheme, found, rest = raw_path.partition("://")
    authority = ""
    if found and not scheme.startswith("/"):
        authority, slash, path = rest.partition("/")
        raw_path = slash + path or "/"
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
        if b"\0" in value:
            raise ParsingError("A header holds a NUL")
        seen.add(name)
    if {b"content-length", b"transfer-encoding"} <= seen:
        raise ParsingError("Content-Length and Transfer-Encoding are both there")
