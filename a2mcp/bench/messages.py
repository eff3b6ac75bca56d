"""The bytes of a request, made once: a call then only puts its id between two halves.

Owns headers and framing of both eras. Knows nothing of sockets.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp import __version__
from a2mcp.bench.errors import BadPlan
from a2mcp.bench.plan import Era, Step

if TYPE_CHECKING:
    from a2mcp.bench.plan import Plan

FIRST_ID: Final = 1_000_000_000
"""Ids have ten digits, so that the length of a body does not depend on them."""
_META: Final = "io.modelcontextprotocol/"
_CLIENT: Final = {"name": "a2mcp-bench", "version": __version__}
_ENCODED: Final = re.compile(r"=\?base64\?.*\?=")
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Template(msgspec.Struct, frozen=True):
    """A request in two halves; the id belongs between them. A notification has no id and an empty second half."""

    label: str
    head: bytes
    tail: bytes
    expects_reply: bool

    def render(self, ident: int) -> bytes:
        """The whole request."""
        return b"%b%d%b" % (self.head, ident, self.tail) if self.expects_reply else self.head


def make(plan: Plan, step: Step, session: str | None) -> Template:
    """Make the template of one step.

    Args:
        plan: says era, address and token.
        step: what is asked for.
        session: the value for ``mcp-session-id``, if there is one. ``initialize`` never carries it.
    """
    method = "tools/call" if step.tool is not None else str(step.method)
    params = _params(plan.era, method, step)
    expects_reply = not method.startswith("notifications/")
    encoded = msgspec.json.encode(params)
    opening = b'{"jsonrpc":"2.0","id":' if expects_reply else b'{"jsonrpc":"2.0"'
    closing = b',"method":' + msgspec.json.encode(method) + b',"params":' + encoded + b"}"
    length = len(opening) + len(closing) + (len(str(FIRST_ID)) if expects_reply else 0)
    head = _head(plan, _headers(plan, method, params, session) | {"content-length": str(length)})
    if expects_reply:
        return Template(step.label, head + opening, closing, True)
    return Template(step.label, head + opening + closing, b"", False)


def opening(plan: Plan) -> tuple[Step, Step]:
    """The two messages that open a legacy session: ``initialize`` and the note that it was understood."""
    return Step(method="initialize", params=_greeting(plan.era)), Step(method="notifications/initialized")


def ending(plan: Plan, session: str) -> bytes:
    """The request that ends a session."""
    headers = _common(plan) | {"mcp-session-id": session, "mcp-protocol-version": plan.era.version}
    return _head(plan, headers, verb="DELETE")


def _greeting(era: Era) -> dict[str, Any]:
    return {"protocolVersion": era.version, "capabilities": {}, "clientInfo": _CLIENT}


def _params(era: Era, method: str, step: Step) -> dict[str, Any]:
    params = dict(step.params)
    if step.tool is not None:
        params = {"name": step.tool, "arguments": step.args}
    elif method == "initialize" and not params:
        params = _greeting(era)
    if era is Era.MODERN:
        meta = {_META + "protocolVersion": era.version, _META + "clientCapabilities": {}, _META + "clientInfo": _CLIENT}
        params["_meta"] = meta | params.get("_meta", {})
    return params


def _headers(plan: Plan, method: str, params: dict[str, Any], session: str | None) -> dict[str, str]:
    headers = _common(plan) | {"content-type": "application/json"}
    if plan.era is Era.MODERN:
        headers |= {"mcp-protocol-version": plan.era.version, "mcp-method": header_value(method)}
        if method in _NAMED:
            headers["mcp-name"] = header_value(str(params.get(_NAMED[method], "")))
    elif method != "initialize":
        headers["mcp-protocol-version"] = plan.era.version
        if session is not None:
            headers["mcp-session-id"] = session
    return headers


def _common(plan: Plan) -> dict[str, str]:
    headers = {
        "host": plan.address.authority,
        "user-agent": f"a2mcp-bench/{__version__}",
        "accept": "application/json, text/event-stream",
    }
    if plan.token is not None:
        headers["authorization"] = f"Bearer {plan.token}"
    return headers


def _head(plan: Plan, headers: dict[str, str], *, verb: str = "POST") -> bytes:
    lines = [f"{verb} {plan.address.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def header_value(value: str) -> str:
    """Write a text as a mirrored header: as it is where HTTP allows it, else in the specification's base64 form."""
    plain = value.isascii() and value.isprintable() and value == value.strip() and not _ENCODED.fullmatch(value)
    return value if plain else f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def check_token(token: str) -> str:
    """Take the white space off a token that was read from a file.

    Raises:
        BadPlan: nothing is left, or it cannot stand in a header.
    """
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise BadPlan("The token is empty or has characters that cannot stand in a header.")
    return token
