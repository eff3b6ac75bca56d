"""The standard dialect from the outside: requests to ``/mcp``, with plain and with streamed answers."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Daemon

META = "io.modelcontextprotocol/"
STREAM = "application/json, text/event-stream"


class Open:
    """A response whose body may still be coming, with its connection."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self.response = connection.getresponse()

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the messages as they come."""
        if "event-stream" not in (self.response.getheader("Content-Type") or ""):
            yield json.loads(self.response.read())
            return
        for line in self.response:
            if line.startswith(b"data:"):
                yield json.loads(line[5:])

    def close(self) -> None:
        """Close the connection, whatever is still to come."""
        self.response.close()
        self._connection.close()


class Standard:
    """A client on ``/mcp``; one connection for each request."""

    def __init__(self, daemon: Daemon, *, version: str = "2025-11-25", modern: bool = False, **headers: str) -> None:
        self._daemon = daemon
        self._version = "2026-07-28" if modern else version
        self._modern = modern
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.capabilities: dict[str, Any] = {}
        self._id = 0

    def open(self, method: str, params: dict[str, Any] | None = None, *, token: Any = None) -> Open:
        """Send one request and return the response, whose body may still be coming."""
        self._id += 1
        sent = dict(params or {})
        meta = {"progressToken": token} if token is not None else {}
        headers = {
            "Authorization": f"Bearer {self._daemon.token}", "Accept": STREAM, "MCP-Protocol-Version": self._version,
            **self._headers,
        }  # fmt: skip
        if self._modern:
            meta |= {f"{META}protocolVersion": self._version, f"{META}clientCapabilities": self.capabilities}
            meta[f"{META}clientInfo"] = {"name": "modern tests", "version": "1"}
            headers["Mcp-Method"] = method
            if "name" in sent or "uri" in sent:
                headers["Mcp-Name"] = sent.get("name", sent.get("uri"))
        if meta:
            sent["_meta"] = meta
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": sent}
        return self.post(message, headers)

    def post(self, message: Any, headers: dict[str, str] | None = None) -> Open:
        """Send one message."""
        connection = http.client.HTTPConnection("127.0.0.1", self._daemon.port, timeout=30)
        headers = headers or {"Authorization": f"Bearer {self._daemon.token}"}
        connection.request("POST", "/mcp", json.dumps(message).encode(), headers)
        return Open(connection)

    def ask(self, method: str, params: dict[str, Any] | None = None, *, token: Any = None) -> list[dict[str, Any]]:
        """Send one request and return every message of its answer; the response is the last."""
        answer = self.open(method, params, token=token)
        found = list(answer.messages())
        answer.close()
        return found

    def result(self, method: str, **params: Any) -> Any:
        """Send one request and return its result."""
        answer = self.ask(method, params)[-1]
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, **params: Any) -> Any:
        """Send one request and return its error."""
        answer = self.ask(method, params)[-1]
        assert "error" in answer, answer
        return answer["error"]

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool and return its result."""
        return self.result("tools/call", name=tool, arguments=arguments)

    def read(self, uri: str) -> dict[str, Any]:
        """Read a resource of one part."""
        (contents,) = self.result("resources/read", uri=uri)["contents"]
        assert contents["uri"] == uri
        return dict(contents)

