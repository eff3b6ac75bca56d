"""JSON-RPC 2.0: one body to one message, and answers back to bytes. Knows no method and no transport."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.errors import BodyTooLarge, InvalidParams, InvalidRequest, ParseError
from a2mcp.protocol import bulk, halves

if TYPE_CHECKING:
    from a2mcp.errors import A2mcpError

NULL: Final = b"null"
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602

LONGEST_ID: Final = 1024
"""Bytes of an id that are echoed; a longer one is refused rather than shortened."""

LONGEST_METHOD: Final = 1024
"""Bytes of a method name; a longer one is no method of anybody's."""

_INTEGER = re.compile(rb"-?(0|[1-9][0-9]*)")


class Message(msgspec.Struct, frozen=True):
    """One request or notification.

    ``id`` and ``params`` stay the bytes they came in, checked when somebody needs them. A repeated member counts as
    its last occurrence.
    """

    jsonrpc: str
    method: str
    id: msgspec.Raw = msgspec.Raw()
    params: msgspec.Raw = msgspec.Raw()

    @property
    def is_notification(self) -> bool:
        """Whether nobody waits for an answer: there is no id."""
        return not self.id

    @property
    def request_id(self) -> bytes:
        """The id to answer with: the caller's bytes, or ``null`` where there was none."""
        return bytes(self.id) or NULL


class Answer(msgspec.Struct, frozen=True):
    """A client's response to a request of ours."""

    jsonrpc: str
    id: msgspec.Raw
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class _Loose(msgspec.Struct, frozen=True):
    """What is looked at when a message has the wrong shape: only the id, to answer with it."""

    id: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(Message)
_loose_decoder = msgspec.json.Decoder(_Loose)
_answer_decoder = msgspec.json.Decoder(Answer)
_any_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


def decode(body: bytes) -> Message:
    """Read one JSON-RPC 2.0 message.

    Raises:
        BodyTooLarge: it holds more than anybody has use for.
        ParseError: the body is not one JSON text in UTF-8.
        InvalidRequest: it is, but not one message: an array, no ``jsonrpc: "2.0"``, no string ``method``, an odd id.
            The error's ``request_id`` is the id to answer with where one could be read.
    """
    if bulk.is_too_much(body):
        raise BodyTooLarge(f"the body holds more than {bulk.MOST_MEMBERS} values")
    try:
        # msgspec passes Raw members through unread, so bad UTF-8 in them would only show later, deep inside.
        if not body.isascii():
            bulk.check_utf8(body)
        message = _decoder.decode(body)
    except msgspec.ValidationError as cause:
        raise _refused_shape(body) from cause
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise _refused_text(body) from cause
    if message.jsonrpc != "2.0" or len(message.method) > LONGEST_METHOD or not _is_id(message.id):
        raise _refused_shape(body)
    return message


def decode_any(body: bytes) -> Message | Answer:
    """Read one request, notification or response, as the specification has them: an id is never ``null``.

    Raises:
        ParseError, InvalidRequest, InvalidParams: as ``decode``.
    """
    try:
        message = decode(body)
    except InvalidRequest:
        if (answer := _answer(body)) is not None:
            return answer
        if body.lstrip()[:1] == b"[":
            raise InvalidRequest("invalid request: one message at a time, no batch of them") from None
        raise
    if bytes(message.id) == NULL:
        raise InvalidRequest("invalid request: 'id' must be a string or an integer")
    return message


def _answer(body: bytes) -> Answer | None:
    try:
        answer = _answer_decoder.decode(body)
    except msgspec.DecodeError:
        return None
    says_something = bool(answer.result) != bool(answer.error)
    return answer if answer.jsonrpc == "2.0" and says_something and _is_id(answer.id) else None


def _is_id(raw: msgspec.Raw) -> bool:
    """Whether this is an id we answer with: a string, an integer of any size, or none at all."""
    value = bytes(raw)
    if value in (b"", NULL):
        return True
    return len(value) <= LONGEST_ID and (value[:1] == b'"' or _INTEGER.fullmatch(value) is not None)


def _refused_shape(body: bytes) -> ParseError | InvalidRequest | InvalidParams:
    """Tell a body that is no JSON from one that is JSON of the wrong shape, and keep the id where there is one."""
    try:
        _any_decoder.decode(body)
        loose = _loose_decoder.decode(body)
    except msgspec.ValidationError:
        return InvalidRequest("invalid request")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _refused_text(body)
    error = InvalidRequest("invalid request")
    if _is_id(loose.id):
        error.request_id = bytes(loose.id) or NULL
    return error


def _refused_text(body: bytes) -> ParseError | InvalidParams:
    """Tell text that is no JSON from JSON that spells half a character, which has an answer of its own."""
    found = halves.find(body)
    if found is None:
        return ParseError("parse error")
    said, request_id = found
    error = InvalidParams(f"invalid params: {said}.", hint="Send whole characters.")
    error.request_id = request_id
    return error


def result(request_id: bytes, encoded: bytes) -> bytes:
    """The body of a success; ``encoded`` is the JSON of ``result``."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (request_id, encoded)


def error(request_id: bytes, code: int, message: str, data: Any = None) -> bytes:
    """The body of a JSON-RPC error."""
    more = b"" if data is None else b',"data":' + _encoder.encode(data)
    return b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":%b%b}}' % (
        request_id,
        code,
        _encoder.encode(message),
        more,
    )


def error_of(request_id: bytes, cause: A2mcpError) -> bytes:
    """The body of a JSON-RPC error for one of ours."""
    return error(request_id, cause.code, str(cause), cause.data)
