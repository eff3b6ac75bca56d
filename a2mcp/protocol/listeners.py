"""Who listens for changes: the open answers of ``subscriptions/listen``, each with what it asked for.

A stream costs an object and a connection, no thread. Reading takes no lock; each change is one dict operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from a2mcp.errors import Busy, InvalidRequest, Stopping
from a2mcp.protocol import jsonrpc, notices
from a2mcp.protocol.caller import SUBSCRIPTION
from a2mcp.protocol.response import Response

if TYPE_CHECKING:
    from a2mcp.protocol.exchange import Exchange
    from a2mcp.types import JsonObject

MOST: Final = 4096

KINDS: Final = {
    "toolsListChanged": notices.TOOLS_CHANGED,
    "promptsListChanged": notices.PROMPTS_CHANGED,
    "resourcesListChanged": notices.RESOURCES_CHANGED,
}


class Listener(msgspec.Struct, frozen=True):
    """One open subscription."""

    exchange: Exchange
    methods: frozenset[str]
    uris: frozenset[str]

    @property
    def granted(self) -> JsonObject:
        """What it is told about, as the acknowledgement says it."""
        granted: JsonObject = {kind: True for kind, method in KINDS.items() if method in self.methods}
        if self.uris:
            granted["resourceSubscriptions"] = sorted(self.uris)
        return granted


class Listeners:
    """The open subscriptions."""

    def __init__(self) -> None:
        self._open: dict[int, Listener] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    def add(self, exchange: Exchange, wanted: JsonObject) -> None:
        """Open a subscription: acknowledge it, and keep it until its client leaves.

        Raises:
            Busy: too many are open.
            Stopping: the daemon goes down.
            InvalidRequest: the client takes no stream.
        """
        if self._closed:
            raise Stopping("the daemon is stopping", hint="Connect again in a moment.")
        if len(self._open) >= MOST:
            raise Busy(f"{MOST} subscriptions are open.", hint="Close one, or poll the lists instead.")
        uris = wanted.get("resourceSubscriptions")
        listener = Listener(
            exchange,
            frozenset(method for kind, method in KINDS.items() if wanted.get(kind) is True),
            frozenset(uri for uri in uris if isinstance(uri, str)) if isinstance(uris, list) else frozenset(),
        )
        if not exchange.reply.begin_stream():
            raise InvalidRequest("subscriptions/listen needs 'Accept: text/event-stream'")
        key = id(listener)
        self._open[key] = listener
        self._send(listener, notices.ACKNOWLEDGED, {"notifications": listener.granted})
        exchange.reply.when_gone(lambda: self._forget(key))

    def _forget(self, key: int) -> None:
        self._open.pop(key, None)

    def changed(self, method: str, uri: str | None = None) -> None:
        """Tell a change to everybody who asked for it. Called from any thread."""
        for listener in list(self._open.values()):
            if method in listener.methods:
                self._send(listener, method)
            elif uri is not None and uri in listener.uris:
                self._send(listener, method, {"uri": uri})

    def tend(self, now: float) -> None:
        """Keep silent streams alive."""
        for listener in list(self._open.values()):
            listener.exchange.reply.tend(now)

    def close(self) -> None:
        """End every subscription with its result, and open no more."""
        self._closed = True
        for key in list(self._open):
            listener = self._open.pop(key, None)
            if listener is not None:
                listener.exchange.reply.complete(_ended(listener))

    @staticmethod
    def _send(listener: Listener, method: str, params: dict[str, Any] | None = None) -> None:
        listener.exchange.reply.send(notices.subscribed(listener.exchange.request_id, method, params))


def _ended(listener: Listener) -> Response:
    request_id = listener.exchange.request_id
    meta = {SUBSCRIPTION: msgspec.Raw(request_id)}
    return Response(200, jsonrpc.result(request_id, msgspec.json.encode({"resultType": "complete", "_meta": meta})))
