"""Which dialect a request to ``/mcp`` speaks, and whether it speaks it rightly.

The body decides first: a request whose ``_meta`` names a version is modern, whatever its headers say. The order of the
checks is the specification's and a contract: ``_meta`` (-32602), headers that must repeat the body (-32020), version
(-32022), and only then the method.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.audit.record import client_name
from a2mcp.errors import HeaderMismatch, InvalidParams, InvalidRequest, UnsupportedVersion
from a2mcp.protocol.caller import CAPABILITIES, CLIENT_INFO, LEVELS, LOG_LEVEL, VERSION, Caller
from a2mcp.protocol.versions import LEGACY, MODERN, NEWEST_LEGACY

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.protocol.dialects import Dialect
    from a2mcp.types import JsonObject

    Header = Callable[[str], str | None]

_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The methods whose ``Mcp-Name`` must repeat a parameter, and which."""

_LONGEST_TRACE: Final = 512
"""Characters of one of the two members of a trace's context."""


class Params(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of any method of the standard dialect, as far as more than one method looks at them."""

    name: Any = None
    uri: Any = None
    cursor: Any = None
    arguments: msgspec.Raw = msgspec.Raw()
    inputResponses: Any = None  # noqa: N815  # The wire's name.
    requestState: Any = None  # noqa: N815
    meta: Any = msgspec.field(default=None, name="_meta")


_decoder = msgspec.json.Decoder(Params)


def read_params(raw: msgspec.Raw) -> Params:
    """Read the parameters of a request.

    Raises:
        InvalidParams: they are there and no object.
    """
    if not raw or bytes(raw) == b"null":
        return Params()
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError) as cause:
        raise InvalidParams("invalid params: must be an object") from cause


def dialect_of(method: str, params: Params, header: Header) -> Dialect:
    """Tell which dialect a request speaks.

    Raises:
        InvalidParams, HeaderMismatch, UnsupportedVersion: it speaks a modern one, wrongly.
    """
    meta = params.meta if isinstance(params.meta, dict) else {}
    version = header("MCP-PROTOCOL-VERSION")
    if VERSION not in meta and (version is None or version in LEGACY):
        return LEGACY.get(version or "", NEWEST_LEGACY)
    if VERSION not in meta and method == "initialize":
        raise UnsupportedVersion(version or "", sorted(MODERN))
    return _modern(method, params, meta, header)


def name_of(method: str, params: Params) -> Any:
    """Say what ``Mcp-Name`` must repeat; None for a method that has no such header."""
    return getattr(params, _NAMED[method]) if method in _NAMED else None


def check_notification(version: str | None) -> None:
    """Refuse a notification in a version that nobody here speaks.

    Raises:
        UnsupportedVersion: that.
    """
    if version is not None and version not in LEGACY and version not in MODERN:
        raise UnsupportedVersion(version, sorted(MODERN))


def check_response(version: str | None) -> None:
    """Refuse a posted response where there are no requests to clients.

    Raises:
        InvalidRequest: the client speaks a modern version.
    """
    if version is not None and version not in LEGACY:
        raise InvalidRequest("invalid request: this version has no requests that a client answers")


def _modern(method: str, params: Params, meta: JsonObject, header: Header) -> Dialect:
    missing = [key for key in (VERSION, CAPABILITIES) if key not in meta]
    if missing:
        raise InvalidParams(f"invalid params: _meta lacks {', '.join(missing)}")
    if not isinstance(meta[CAPABILITIES], dict) or not isinstance(meta[VERSION], str):
        raise InvalidParams(f"invalid params: {VERSION} must be a string and {CAPABILITIES} an object")
    _repeats("MCP-Protocol-Version", _bare(header("MCP-PROTOCOL-VERSION")), meta[VERSION])
    _repeats("Mcp-Method", _bare(header("MCP-METHOD")), method)
    if method in _NAMED:
        _repeats("Mcp-Name", decoded(header("MCP-NAME")), name_of(method, params))
    dialect = MODERN.get(meta[VERSION])
    if dialect is None:
        raise UnsupportedVersion(meta[VERSION], sorted(MODERN))
    return dialect


def _repeats(name: str, sent: str | None, expected: Any) -> None:
    if sent is None:
        raise HeaderMismatch(f"header mismatch: {name} is missing")
    if sent != expected:
        raise HeaderMismatch(f"header mismatch: {name} does not repeat what the body says")


def _bare(value: str | None) -> str | None:
    """Take off the spaces that HTTP allows around a value; within base64 they would be the value's own."""
    return None if value is None else value.strip(" \t")


def decoded(value: str | None) -> str | None:
    """Read a mirrored header: plain ASCII, or ``=?base64?…?=`` around UTF-8.

    Raises:
        HeaderMismatch: it looks encoded and cannot be decoded.
    """
    value = _bare(value)
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except ValueError as cause:  # No base64, no ASCII or no UTF-8.
        raise HeaderMismatch("header mismatch: a base64 header cannot be decoded") from cause


def caller_of(params: Params, dialect: Dialect, client: str | None) -> Caller:
    """Gather what a request says about its sender.

    Raises:
        InvalidParams: a log level that does not exist.
    """
    meta = params.meta if isinstance(params.meta, dict) else {}
    level = meta.get(LOG_LEVEL) if dialect.asks_by_retry else "debug"
    if level is not None and level not in LEVELS:
        raise InvalidParams(f"invalid params: {LOG_LEVEL} must be one of {', '.join(LEVELS)}")
    info = meta.get(CLIENT_INFO)
    named = info.get("name") if isinstance(info, dict) else None
    client = client or (named if isinstance(named, str) else None)
    return Caller(
        client=client_name(client) if client else None,
        progress_token=_token(meta.get("progressToken")),
        capabilities=meta.get(CAPABILITIES) if dialect.asks_by_retry else None,
        log_level=level,
        answers=params.inputResponses if isinstance(params.inputResponses, dict) else {},
        state=params.requestState if isinstance(params.requestState, str) else None,
        trace=_trace(meta) if "traceparent" in meta else {},
    )


def _trace(meta: JsonObject) -> dict[str, str]:
    """Take what continues the caller's trace; what is no such thing is left out: a trace is no reason to fail."""
    values = {name: meta.get(name) for name in ("traceparent", "tracestate")}
    return {name: value for name, value in values.items() if isinstance(value, str) and len(value) <= _LONGEST_TRACE}


def _token(value: Any) -> bytes | None:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return msgspec.json.encode(value)
    return None
