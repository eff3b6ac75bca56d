"""A client of ``/mcp`` of the plainest kind, in both eras, and a reader of event streams."""

from __future__ import annotations

import http.client
import json
import sys
from typing import TYPE_CHECKING, Any, Self

from harness import ROOT, Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Daemon

LEGACY, MODERN = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
BOTH_FORMS = "application/json, text/event-stream"
FIXTURE = str(ROOT / "tests" / "conformance" / "serve_fixture.py")
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

Headers = dict[str, str | None]


def fixture_argv(*options: str) -> list[str]:
    """The command line of a daemon with the fixture; an option shortens a wait, as ``SLOW_S=0.2``."""
    return [sys.executable, FIXTURE, *options]


def legacy(method: str, params: Any = None, *, request_id: Any = 1) -> tuple[dict[str, Any], Headers]:
    """A request as clients up to 2025-11-25 write it."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else message | {"params": params}, {}


def modern(
    method: str,
    params: dict[str, Any] | None = None,
    *,
    request_id: Any = 1,
    can: dict[str, Any] | None = None,
    version: str = MODERN,
    **meta: Any,
) -> tuple[dict[str, Any], Headers]:
    """A request as clients of 2026-07-28 write it: everything in ``_meta``, and the headers that repeat it."""
    params = dict(params or {})
    said = {META + "protocolVersion": version, META + "clientCapabilities": can or {}, **meta}
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params | {"_meta": said}}
    headers: Headers = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    if method in NAMED and isinstance(params.get(NAMED[method]), str):
        headers["Mcp-Name"] = params[NAMED[method]]
    return message, headers


class Standard:
    """One keep-alive connection to ``/mcp``."""

    def __init__(self, daemon: Daemon, *, path: str = "/mcp", timeout: float = 30.0) -> None:
        self.daemon = daemon
        self.path = path
        self._timeout = timeout
        self._connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=timeout)
        daemon.closes(self)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def send(self, body: Any, headers: Headers | None = None, *, method: str = "POST") -> Answer:
        """Send one body, and read the answer whatever form it has; of a stream, the last message is the answer."""
        response = self._response(self._connection, body, headers or {}, method)
        data = response.read()
        found = {name.lower(): value for name, value in response.getheaders()}
        if found.get("content-type") == "text/event-stream":
            messages = list(events(data.decode().splitlines()))
            answer = Answer(response.status, found, json.dumps(messages[-1]).encode())
            answer.before = messages[:-1]  # type: ignore[attr-defined]
            return answer
        return Answer(response.status, found, data)

    def legacy(self, method: str, params: Any = None, headers: Headers | None = None, **options: Any) -> Answer:
        """Ask as a legacy client does."""
        message, usual = legacy(method, params, **options)
        return self.send(message, usual | (headers or {}))

    def modern(self, method: str, params: Any = None, headers: Headers | None = None, **options: Any) -> Answer:
        """Ask as a modern client does."""
        message, usual = modern(method, params, **options)
        return self.send(message, usual | (headers or {}))

    def call(self, tool: str, /, **arguments: Any) -> Answer:
        """Call a tool as a modern client does."""
        return self.modern("tools/call", {"name": tool, "arguments": arguments})

    def stream(self, message: dict[str, Any], headers: Headers | None = None) -> Stream:
        """Send a request on a connection of its own, and read its answer piece by piece."""
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=self._timeout)
        return Stream(connection, self._response(connection, message, headers or {}, "POST"))

    def alive(self) -> None:
        """Fail unless a ping is answered."""
        answer = self.legacy("ping")
        assert (answer.status, answer.json.get("result")) == (200, {}), answer.body

    def _response(
        self, connection: http.client.HTTPConnection, body: Any, headers: Headers, method: str
    ) -> http.client.HTTPResponse:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        usual: Headers = {
            "Authorization": f"Bearer {self.daemon.token}",
            "Content-Type": "application/json",
            "Accept": BOTH_FORMS,
        }
        sent = {name: value for name, value in (usual | headers).items() if value is not None}
        connection.request(method, self.path, data, sent)
        return connection.getresponse()


class Stream:
    """An answer that comes in pieces."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.comments = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave, whether there is an answer or not."""
        self._response.close()
        self._connection.close()

    def next(self) -> dict[str, Any]:
        """The next message; None of the daemon's comments is one, but each is counted."""
        return next(events(self._lines()))

    def rest(self) -> list[dict[str, Any]]:
        """Every message until the stream ends."""
        return list(events(self._lines()))

    def comment(self) -> None:
        """Wait for the next comment."""
        before = self.comments
        for _ in self._lines():
            if self.comments > before:
                return
        raise AssertionError("the stream ended without a comment")

    def _lines(self) -> Iterator[str]:
        while line := self._response.readline():
            if line.startswith(b":"):
                self.comments += 1
            yield line.decode().rstrip("\r\n")


def events(lines: Any) -> Iterator[dict[str, Any]]:
    """The messages in the lines of a stream."""
    for line in lines:
        if line.startswith("data:"):
            yield json.loads(line[5:])
