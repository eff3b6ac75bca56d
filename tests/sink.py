"""A provider of models on loopback: speaks both wire formats, says what a test told it to, and counts what it is asked.

Every request is kept. Each is answered with the next step of the script; the last step goes on for ever.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

from sink_wires import PATHS, STREAMED, WHOLE, Cut, Garbage, Hang, Refuse, Say, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Asked(NamedTuple):
    """One request as it came."""

    api: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def key(self) -> str | None:
        """The credential it came with."""
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ") or None

    @property
    def tools(self) -> list[str]:
        """The tools that the model may use."""
        return [tool.get("name") or tool["function"]["name"] for tool in self.body.get("tools", ())]

    @property
    def said(self) -> str:
        """All that the model is told, as JSON."""
        return json.dumps([self.body.get("system"), self.body["messages"]], ensure_ascii=False)


class Sink:
    """The running provider.

    Args:
        script: how to answer; a function is given the request and returns a step.
    """

    def __init__(self, *script: Step | Callable[[Asked], Step]) -> None:
        self.asked: list[Asked] = []
        self.connections = 0
        self.echoed = ""
        """What was said of a key when it was refused, where the script wanted that (header ``x-echo``)."""
        self._script = list(script) or [Say("Done.")]
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.sink = self
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The base of its addresses, as a settings file has it."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def count(self) -> int:
        """How many requests have come."""
        return len(self.asked)

    def then(self, *script: Step | Callable[[Asked], Step]) -> None:
        """Go on with another script."""
        with self._lock:
            self._script = list(script)

    def take(self, asked: Asked) -> Step:
        """Count a request and choose its answer."""
        with self._lock:
            self.asked.append(asked)
            step = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return step(asked) if callable(step) else step

    def close(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


@contextlib.contextmanager
def serving(*script: Step | Callable[[Asked], Step]) -> Iterator[Sink]:
    """A provider for the length of a block."""
    sink = Sink(*script)
    try:
        yield sink
    finally:
        sink.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    sink: Sink

    def get_request(self) -> tuple[socket.socket, Any]:
        self.sink.connections += 1
        return super().get_request()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is what some tests want."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        api = PATHS.get(self.path)
        if api is None:
            self._whole(404, {"error": {"message": f"no such path: {self.path}"}})
            return
        step = self.server.sink.take(Asked(api, {name.lower(): value for name, value in self.headers.items()}, body))
        if isinstance(step, Refuse):
            self._refuse(step)
        elif not body.get("stream"):
            if isinstance(step, Hang):
                self._wait(step)
                step = step.then
            self._whole(200, WHOLE[api](step))
        else:
            self._stream(api, step)

    def _refuse(self, step: Refuse) -> None:
        message = f"refused with {step.status}"
        if dict(step.headers).get("x-echo"):
            message += f": the key {self.server.sink.asked[-1].key} is wrong"
            self.server.sink.echoed = message
        said = {"type": "error", "error": {"type": "refused", "message": message}}
        self._whole(step.status, said, dict(step.headers))

    def _whole(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, api: str, step: Step) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if isinstance(step, Garbage):
            self._chunk(step.data)
        elif isinstance(step, Hang):
            self._hang(step, STREAMED[api](step.then))
        else:
            for event in STREAMED[api](step):
                self._chunk(event)
        if isinstance(step, Cut):
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _hang(self, step: Hang, events: Iterator[bytes]) -> None:
        self._chunk(next(events))
        self._wait(step)
        for event in events:
            self._chunk(event)

    def _wait(self, step: Hang) -> None:
        while not step.released.wait(0.05):
            if self._left():
                raise ConnectionAbortedError

    def _left(self) -> bool:
        self.connection.settimeout(0.01)
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()
