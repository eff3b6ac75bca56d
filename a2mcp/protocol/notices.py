"""The notifications that we send, as bytes. Knows no stream."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from a2mcp.protocol.caller import SUBSCRIPTION
from a2mcp.types import JsonObject

_encode = msgspec.json.Encoder().encode

TOOLS_CHANGED: Final = "notifications/tools/list_changed"
PROMPTS_CHANGED: Final = "notifications/prompts/list_changed"
RESOURCES_CHANGED: Final = "notifications/resources/list_changed"
RESOURCE_UPDATED: Final = "notifications/resources/updated"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


def notice(method: str, params: JsonObject | None = None) -> bytes:
    """Write one notification."""
    message: JsonObject = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return _encode(message)


def progress(token: bytes, done: float, total: float | None, message: str | None) -> bytes:
    """Write ``notifications/progress`` under the token that the caller gave."""
    params: JsonObject = {"progressToken": msgspec.Raw(token), "progress": done}
    if total is not None:
        params["total"] = total
    if message is not None:
        params["message"] = message
    return notice("notifications/progress", params)


def log(level: str, logger: str, data: Any) -> bytes:
    """Write ``notifications/message``."""
    return notice("notifications/message", {"level": level, "logger": logger, "data": data})


def request(request_id: str, method: str, params: JsonObject) -> bytes:
    """Write a request to the client, which it answers by a POST."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def subscribed(subscription: bytes, method: str, params: JsonObject | None = None) -> bytes:
    """Write a notification that goes out under a subscription, which each one names."""
    meta = {SUBSCRIPTION: msgspec.Raw(subscription)}
    return notice(method, {**(params or {}), "_meta": meta})
