"""The methods of the standard dialect: which era has them, and what answers each.

A method that only says what is known answers at once with the JSON of its result. One that does something
(``tools/call``, ``resources/read``) or stays open (``subscriptions/listen``) hands the exchange on and returns None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from a2mcp import __version__
from a2mcp.errors import InvalidParams, MethodNotFound
from a2mcp.protocol import mirrors, pages
from a2mcp.protocol.caller import LEVELS
from a2mcp.protocol.instructions import INSTRUCTIONS
from a2mcp.protocol.versions import LEGACY, MODERN, NEWEST_LEGACY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2mcp.library.shelf import Library
    from a2mcp.protocol.eras import Params
    from a2mcp.protocol.exchange import Exchange
    from a2mcp.types import JsonObject

    Answer = Callable[["Services", "Asked"], bytes | None]

_encode = msgspec.json.Encoder().encode


class Services(Protocol):
    """What the methods need of the living side."""

    @property
    def library(self) -> Library:
        """The resources and prompts."""
        ...

    def tools(self) -> Sequence[msgspec.Raw]:
        """Every tool as ``tools/list`` shows it, encoded."""
        ...

    def tool_schema(self, name: str) -> JsonObject:
        """The schema of a tool's arguments; an empty one where there is no such tool."""
        ...

    def call(self, exchange: Exchange, tool: str, arguments: msgspec.Raw) -> None:
        """Run a tool; the exchange is completed when it has ended."""
        ...

    def read(self, exchange: Exchange, uri: str) -> None:
        """Read a resource; the exchange is completed when it is there."""
        ...

    def prompt(self, exchange: Exchange, name: str, arguments: dict[str, str]) -> bytes | None:
        """Fill in a prompt; the JSON of the result, or None when the exchange is answered with questions instead."""
        ...

    def listen(self, exchange: Exchange, wanted: JsonObject) -> None:
        """Keep the exchange open and tell it what changes."""
        ...


class Asked(msgspec.Struct, frozen=True):
    """One request that has passed every check that is not its method's own."""

    exchange: Exchange
    params: Params
    raw: msgspec.Raw
    header: Callable[[str], str | None]


# --- the methods ----------------------------------------------------------------------------------------------------


def _initialize(_services: Services, asked: Asked) -> bytes:
    wanted = _members(asked.raw).get("protocolVersion")
    dialect = LEGACY.get(wanted, NEWEST_LEGACY) if isinstance(wanted, str) else NEWEST_LEGACY
    return _encode(
        {
            "protocolVersion": dialect.version,
            "capabilities": _capabilities(listen=False),
            "serverInfo": {"name": "a2mcp", "title": "a2mcp", "version": __version__},
            "instructions": INSTRUCTIONS,
        }
    )


def _discover(_services: Services, _asked: Asked) -> bytes:
    return _encode(
        {
            "supportedVersions": sorted(MODERN),
            "capabilities": _capabilities(listen=True),
            "instructions": INSTRUCTIONS,
            **pages.CACHE,
        }
    )


def _capabilities(*, listen: bool) -> JsonObject:
    """What we can do. Without sessions there is nowhere to send changes to but an open ``subscriptions/listen``."""
    return {
        "tools": {"listChanged": listen},
        "resources": {"subscribe": listen, "listChanged": listen},
        "prompts": {"listChanged": listen},
        "completions": {},
        "logging": {},
    }


def _nothing(_services: Services, _asked: Asked) -> bytes:
    return b"{}"


def _set_level(_services: Services, asked: Asked) -> bytes:
    if _members(asked.raw).get("level") not in LEVELS:
        raise InvalidParams(f"invalid params: level must be one of {', '.join(LEVELS)}")
    return b"{}"


def _list_tools(services: Services, asked: Asked) -> bytes:
    return _listed("tools", services.tools(), asked)


def _list_resources(services: Services, asked: Asked) -> bytes:
    return _listed("resources", services.library.resources(), asked)


def _list_templates(services: Services, asked: Asked) -> bytes:
    return _listed("resourceTemplates", services.library.templates(), asked)


def _list_prompts(services: Services, asked: Asked) -> bytes:
    return _listed("prompts", services.library.prompts(), asked)


def _listed(name: str, items: Sequence[Any], asked: Asked) -> bytes:
    return pages.encoded(pages.page(name, items, asked.params.cursor), cacheable=asked.exchange.dialect.cacheable)


def _call_tool(services: Services, asked: Asked) -> None:
    name = asked.params.name
    if not isinstance(name, str):
        raise InvalidParams("invalid params: 'name' must be a string")
    if asked.exchange.dialect.mirrors:
        mirrors.check(services.tool_schema(name), asked.params.arguments, asked.header)
    services.call(asked.exchange, name, asked.params.arguments)


def _read_resource(services: Services, asked: Asked) -> None:
    services.read(asked.exchange, _uri(asked))


def _subscribe(_services: Services, asked: Asked) -> bytes:
    _uri(asked)
    return b"{}"


def _uri(asked: Asked) -> str:
    uri = asked.params.uri
    if not isinstance(uri, str):
        raise InvalidParams("invalid params: 'uri' must be a string")
    return uri


def _get_prompt(services: Services, asked: Asked) -> bytes | None:
    name = asked.params.name
    if not isinstance(name, str):
        raise InvalidParams("invalid params: 'name' must be a string")
    arguments = _members(asked.params.arguments)
    if not all(isinstance(value, str) for value in arguments.values()):
        raise InvalidParams("invalid params: every argument of a prompt is a string")
    return services.prompt(asked.exchange, name, arguments)


def _complete(services: Services, asked: Asked) -> bytes:
    members = _members(asked.raw)
    ref, argument = members.get("ref"), members.get("argument")
    if not isinstance(ref, dict) or not isinstance(argument, dict):
        raise InvalidParams("invalid params: 'ref' and 'argument' must be objects")
    target = ref.get("name") if ref.get("type") == "ref/prompt" else ref.get("uri")
    name, value = argument.get("name"), argument.get("value")
    if not (isinstance(target, str) and isinstance(name, str) and isinstance(value, str)):
        raise InvalidParams("invalid params: the reference, the argument's name and its value must be strings")
    values = services.library.complete(target, name, value)
    return _encode(
        {
            "completion": {
                "values": values[:MOST_COMPLETIONS],
                "total": len(values),
                "hasMore": len(values) > MOST_COMPLETIONS,
            }
        }
    )


def _listen(services: Services, asked: Asked) -> None:
    wanted = _members(asked.raw).get("notifications")
    if not isinstance(wanted, dict):
        raise InvalidParams("invalid params: 'notifications' must be an object")
    services.listen(asked.exchange, wanted)


def _members(raw: msgspec.Raw) -> JsonObject:
    """Read an object that may be left out.

    Raises:
        InvalidParams: it is no object, or holds what JSON can say and a program cannot, as a number of 6000 digits.
    """
    try:
        return msgspec.json.decode(raw, type=dict[str, Any] | None) or {} if raw else {}
    except (msgspec.DecodeError, RecursionError) as cause:
        raise InvalidParams(f"invalid params: {cause}") from cause


MOST_COMPLETIONS: Final = 100
ONLY_STREAMS: Final = frozenset({"subscriptions/listen"})
"""The methods whose answer cannot be one JSON object."""

_BOTH: Final[dict[str, Answer]] = {
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "resources/list": _list_resources,
    "resources/templates/list": _list_templates,
    "resources/read": _read_resource,
    "prompts/list": _list_prompts,
    "prompts/get": _get_prompt,
    "completion/complete": _complete,
}
_LEGACY: Final[dict[str, Answer]] = _BOTH | {
    "initialize": _initialize,
    "ping": _nothing,
    "logging/setLevel": _set_level,
    "resources/subscribe": _subscribe,
    "resources/unsubscribe": _subscribe,
    # A notification that came with an id is answered like a request (DSH seed, "Methods").
    "notifications/initialized": _nothing,
    "notifications/cancelled": _nothing,
    "notifications/progress": _nothing,
    "notifications/roots/list_changed": _nothing,
}
_MODERN: Final[dict[str, Answer]] = _BOTH | {
    "server/discover": _discover,
    "subscriptions/listen": _listen,
}


def answer(services: Services, method: str, asked: Asked) -> bytes | None:
    """Answer a request, or hand it on.

    Returns:
        The JSON of the result without what the dialect adds; None when the exchange is completed elsewhere.

    Raises:
        MethodNotFound: the dialect has no such method.
        InvalidParams: its parameters are not what it takes.
    """
    table = _MODERN if asked.exchange.dialect.version in MODERN else _LEGACY
    found = table.get(method)
    if found is None:
        raise MethodNotFound("method not found")
    return found(services, asked)
