"""Reads what a server sends: HTTP/1.1 framing, and the JSON-RPC message inside.

Takes bytes as they come and gives whole replies. Knows nothing of sockets or clocks. Both reply forms are understood: a
JSON body and a ``text/event-stream`` whose last message is the answer. A reply is whole when its body ends, so a server
that goes on streaming after the answer is measured by when it stops.
"""

from __future__ import annotations

from typing import Final

import msgspec

MAX_BODY: Final = 64 * 1024 * 1024
_MAX_HEAD: Final = 64 * 1024
_MAX_CHUNK_LINE: Final = 4096
_CACHED_HEADS: Final = 256


class Malformed(ValueError):
    """Bytes that are not an HTTP reply, or more of them than is read."""


class Head(msgspec.Struct, frozen=True):
    """What of a reply's header block matters here. ``length`` is ``None`` for a body that says its end itself."""

    status: int
    length: int | None
    chunked: bool
    event_stream: bool
    close: bool
    session: str | None


class Reply(msgspec.Struct, frozen=True):
    """One whole reply."""

    head: Head
    body: bytes


class _Error(msgspec.Struct):
    code: int = 0


class _Result(msgspec.Struct):
    is_error: bool = msgspec.field(default=False, name="isError")


class _Message(msgspec.Struct):
    id: int | str | None = None
    result: _Result | None = None
    error: _Error | None = None


_decode = msgspec.json.Decoder(_Message).decode
_heads: dict[bytes, Head] = {}


def head_of(block: bytes) -> Head:
    """Parse a header block (without its final empty line).

    Raises:
        Malformed: the status line or a length is not what HTTP allows.
    """
    # PERF: a server's header blocks hardly differ, so most of them are looked up, not parsed.
    known = _heads.get(block)
    if known is None:
        if len(_heads) >= _CACHED_HEADS:
            _heads.clear()
        known = _heads[block] = _parse_head(block)
    return known


def _parse_head(block: bytes) -> Head:
    first, *lines = block.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not (rest[:3].isascii() and rest[:3].isdigit()):
        raise Malformed("no HTTP/1 status line")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    status, chunked = int(rest[:3]), "chunked" in fields.get("transfer-encoding", "").lower()
    connection = fields.get("connection", "").lower()
    return Head(
        status=status,
        length=_length(fields.get("content-length"), status, chunked=chunked),
        chunked=chunked,
        event_stream=fields.get("content-type", "").lower().startswith("text/event-stream"),
        close="close" in connection or (version == "HTTP/1.0" and "keep-alive" not in connection),
        session=fields.get("mcp-session-id"),
    )


def _length(text: str | None, status: int, *, chunked: bool) -> int | None:
    if status in {204, 304} or status < 200:
        return 0
    if chunked or text is None:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) > MAX_BODY:
        raise Malformed("a Content-Length that is no number, or too large")
    return int(text)


class Reader:
    """The reply side of one connection: ``feed`` it bytes until it gives a reply."""

    __slots__ = ("_buffer", "_chunks", "_head", "_position")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: Head | None = None
        self._chunks: list[bytes] = []
        self._position = 0

    @property
    def empty(self) -> bool:
        """True while no byte of a reply has come."""
        return self._head is None and not self._buffer

    def feed(self, data: bytes) -> Reply | None:
        """Take what a socket gave.

        Returns:
            A reply once it is whole. Bytes after it are dropped: nothing was asked that they could answer.

        Raises:
            Malformed: see ``head_of``; also a broken chunk, or more than ``MAX_BODY``.
        """
        # PERF: the usual reply comes in one piece and names its length; it never touches the buffer.
        if self.empty and (end := data.find(b"\r\n\r\n")) > 0:
            head = head_of(data[:end])
            if head.length is not None and head.status >= 200 and len(data) >= end + 4 + head.length:
                return Reply(head, data[end + 4 : end + 4 + head.length])
        self._buffer += data
        if len(self._buffer) > MAX_BODY + _MAX_HEAD:
            raise Malformed("a reply that is too large")
        if self._head is None and not self._take_head():
            return None
        body = self._take_body()
        return None if body is None else self._finish(body)

    def finish(self) -> Reply | None:
        """The server closed: the reply, if its body was to end that way."""
        if self._head is None or self._head.length is not None or self._head.chunked:
            return None
        return self._finish(bytes(self._buffer))

    def _finish(self, body: bytes) -> Reply:
        head = self._head
        assert head is not None  # noqa: S101 - only called once a head was taken
        self.__init__()  # type: ignore[misc]
        return Reply(head, body)

    def _take_head(self) -> bool:
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = head_of(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
            if head.status >= 200:
                self._head = head
                return True
        if len(self._buffer) > _MAX_HEAD:
            raise Malformed("a header block that does not end")
        return False

    def _take_body(self) -> bytes | None:
        head = self._head
        if head is not None and head.chunked:
            return self._take_chunks()
        if head is None or head.length is None or len(self._buffer) < head.length:
            return None
        return bytes(self._buffer[: head.length])

    def _take_chunks(self) -> bytes | None:
        while (end := self._buffer.find(b"\r\n", self._position)) >= 0:
            size = _chunk_size(self._buffer[self._position : end])
            if size == 0:
                return self._take_trailer(end)
            stop = end + 2 + size
            if len(self._buffer) < stop + 2:
                return None
            self._chunks.append(bytes(self._buffer[end + 2 : stop]))
            self._position = stop + 2
        if len(self._buffer) - self._position > _MAX_CHUNK_LINE:
            raise Malformed("a chunk without a size")
        return None

    def _take_trailer(self, end: int) -> bytes | None:
        """After the last chunk: an empty line at once, or trailer fields and then one."""
        ended = self._buffer.startswith(b"\r\n", end + 2) or self._buffer.find(b"\r\n\r\n", end + 2) >= 0
        return b"".join(self._chunks) if ended else None


def _chunk_size(line: bytearray) -> int:
    digits = bytes(line).partition(b";")[0].strip()
    try:
        size = int(digits, 16)
    except ValueError:
        raise Malformed("a chunk without a size") from None
    if not 0 <= size <= MAX_BODY:
        raise Malformed("a chunk that is too large")
    return size


def judge(reply: Reply, ident: int | None) -> str | None:
    """Say what is wrong with a reply.

    Args:
        reply: what came.
        ident: the id that was asked with; ``None`` for a notification, which is answered with a status alone.

    Returns:
        The kind of error (``http 401``, ``rpc -32601``, ``isError``, ``not json-rpc``, ``wrong id``) or ``None``.
    """
    status = reply.head.status
    if not 200 <= status < 300:
        return f"http {status}"
    if ident is None:
        return None
    try:
        message = _answer_in(reply.body, ident) if reply.head.event_stream else _decode(reply.body)
    except msgspec.MsgspecError:
        return "not json-rpc"
    return _judge_message(message, ident)


def _judge_message(message: _Message, ident: int) -> str | None:
    if message.error is not None:
        return f"rpc {message.error.code}"
    if message.result is None:
        return "not json-rpc"
    if message.id != ident:
        return "wrong id"
    return "isError" if message.result.is_error else None


def _answer_in(stream: bytes, ident: int) -> _Message:
    """The message of an event stream that answers ``ident``; notifications before it are passed over."""
    text = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for event in text.split(b"\n\n"):
        lines = (line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:"))
        data = b"\n".join(lines)
        if data and (message := _decode(data)).id == ident:
            return message
    return _Message()
