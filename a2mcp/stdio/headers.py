"""What a message says about itself, written again as HTTP headers.

Owns what was learned from earlier messages: the version that a handshake agreed on, who the client is, and which
arguments of which tool are mirrored. A modern message carries its version with it; the rest of what it must repeat is
in ``a2mcp/protocol/eras.py`` and ``mirrors.py``, which hold the headers against the body on the other side.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.protocol import eras, mirrors
from a2mcp.protocol.caller import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2mcp.protocol.jsonrpc import Message

USUAL: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

_LONGEST_CLIENT: Final = 80


class _Agreed(msgspec.Struct):
    """The part of the answer to ``initialize`` that is remembered."""

    protocolVersion: str  # noqa: N815  # The wire's name.


class _Info(msgspec.Struct):
    name: str


class _Introduced(msgspec.Struct):
    clientInfo: _Info  # noqa: N815


class _Tool(msgspec.Struct):
    name: str
    inputSchema: dict[str, Any]  # noqa: N815


class _Listed(msgspec.Struct):
    tools: list[_Tool]


class _Called(msgspec.Struct):
    arguments: dict[str, Any] = {}


class Speech:
    """How this client speaks, as far as it is known by now."""

    def __init__(self) -> None:
        self._version: str | None = None
        self._client: str | None = None
        self._mirrored: dict[str, list[tuple[str, tuple[str, ...]]]] = {}

    def headers(self, message: Message | None) -> dict[str, str]:
        """Write the headers for a message; None is a response of the client, which only a legacy one sends."""
        if message is not None:
            meta, params = _described(message)
            if VERSION in meta:
                return USUAL | dict(self._modern(message, meta, params))
        headers = dict(USUAL)
        # A handshake settles the version: a header would say what it is about to be.
        if self._version is not None and (message is None or message.method != "initialize"):
            headers["MCP-Protocol-Version"] = self._version
        if self._client is not None:
            headers["X-A2MCP-Client"] = self._client
        return headers

    def introduced(self, message: Message) -> None:
        """Remember who the client says it is, for the audit log."""
        introduced = _read(message.params, _Introduced)
        name = introduced.clientInfo.name[:_LONGEST_CLIENT] if introduced else ""
        self._client = name if name.isascii() and name.isprintable() and name.strip() else None

    def learn(self, message: Message, result: msgspec.Raw) -> None:
        """Remember what the answer to a request says about the requests that follow."""
        if message.method == "initialize" and (agreed := _read(result, _Agreed)):
            self._version = agreed.protocolVersion
        elif message.method == "tools/list" and (listed := _read(result, _Listed)):
            self._mirrored |= {tool.name: list(mirrors.mirrored(tool.inputSchema)) for tool in listed.tools}

    def _modern(self, message: Message, meta: dict[str, Any], params: eras.Params) -> Iterator[tuple[str, str]]:
        yield "MCP-Protocol-Version", encoded(meta[VERSION])
        yield "Mcp-Method", encoded(message.method)
        name = eras.name_of(message.method, params)
        if not isinstance(name, str):
            return
        yield "Mcp-Name", encoded(name)
        if message.method == "tools/call" and self._mirrored.get(name):
            called = _read(message.params, _Called) or _Called()
            for header, path in self._mirrored[name]:
                if (value := mirrors.value_at(called.arguments, path)) is not None:
                    yield mirrors.PREFIX + header, encoded(value)


def is_modern(message: Message) -> bool:
    """Whether a message names its version itself."""
    return VERSION in _described(message)[0]


def encoded(value: Any) -> str:
    """Write a value as a header: plain ASCII as it is, anything else as ``=?base64?…?=`` around UTF-8."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if plain else f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _described(message: Message) -> tuple[dict[str, Any], eras.Params]:
    """Read the ``_meta`` of a message and its parameters; nothing, where they are not what they should be."""
    params = _read(message.params, eras.Params) or eras.Params()
    return (params.meta if isinstance(params.meta, dict) else {}), params


def _read(raw: msgspec.Raw, kind: type[Any]) -> Any:
    """Read what is wanted of a value, or None: what is wrong with it is the daemon's to say."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
