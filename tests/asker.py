"""Asking ``/mcp`` for what is wanted and getting at it in one line, in whichever era."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from standard_client import META, Standard, legacy, modern

if TYPE_CHECKING:
    from harness import Daemon
    from standard_client import Headers, Stream

CLIENT = {"name": "modern tests", "version": "1"}


class Asker:
    """A client of one revision that returns results.

    Args:
        daemon: whom to ask.
        version: the legacy revision that is spoken.
        can: what a modern client declares; None for a legacy one.
        headers: sent with every request.
    """

    def __init__(
        self, daemon: Daemon, *, version: str = "2025-11-25", can: dict[str, Any] | None = None, **headers: str
    ) -> None:
        self._client = Standard(daemon)
        self._version = version
        self._can = can
        self._headers: Headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def ask(self, method: str, params: dict[str, Any] | None = None, *, token: Any = None) -> list[dict[str, Any]]:
        """Send one request and return every message of its answer; the response is the last."""
        answer = self._client.send(*self._request(method, params, token))
        return [*getattr(answer, "before", ()), answer.json]

    def stream(self, method: str, params: dict[str, Any] | None = None, *, token: Any = None) -> Stream:
        """Send one request and return its answer while it comes."""
        return self._client.stream(*self._request(method, params, token))

    def reply(self, request_id: Any, answer: dict[str, Any]) -> None:
        """Answer a question of the daemon."""
        assert self._client.send({"jsonrpc": "2.0", "id": request_id, **answer}).status == 202

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

    def _request(self, method: str, params: dict[str, Any] | None, token: Any) -> tuple[dict[str, Any], Headers]:
        meta = {} if token is None else {"progressToken": token}
        if self._can is not None:
            message, headers = modern(method, params, can=self._can, **{META + "clientInfo": CLIENT}, **meta)
        else:
            message, headers = legacy(method, {**(params or {}), "_meta": meta})
            headers = {"MCP-Protocol-Version": self._version}
        return message, headers | self._headers
