"""Those who watch a daemon, for tests from the outside: its socket of events, and questions to the operator's channel."""

from __future__ import annotations

import http.client
import json
import socket
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path

    from harness import Daemon


def connect(path: Path, seconds: float = 20.0) -> http.client.HTTPConnection:
    """A connection to a Unix socket."""
    connection = http.client.HTTPConnection("localhost", timeout=seconds)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(seconds)
    connection.sock.connect(str(path))
    return connection


def operator(daemon: Daemon, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Ask the operator's channel; the status and the decoded answer."""
    connection = connect(daemon.home / "operator.sock")
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def approvals(daemon: Daemon) -> list[dict[str, Any]]:
    """The calls that wait for the operator."""
    return list(operator(daemon, "GET", "/approvals")[1])


def decide(daemon: Daemon, approval: str, *, approve: bool) -> None:
    """Say the operator's word about one of them."""
    assert operator(daemon, "POST", "/approvals", {"id": approval, "approve": approve})[0] == 200


class Watching:
    """A stream of events; made once the daemon has said that it is there."""

    def __init__(self, daemon: Daemon, query: str = "", **headers: str) -> None:
        self._connection = connect(daemon.home / "events.sock")
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("GET", f"/events{'?' + query if query else ''}", headers=sent)
        self._response = self._connection.getresponse()
        self.status = self._response.status
        if self.status == 200:
            assert self._response.readline() == b": watching\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()
        self._connection.close()

    def next(self) -> dict[str, Any]:
        """The next event."""
        while line := self._response.readline():
            if line.startswith(b"data: "):
                return json.loads(line[6:])
        raise AssertionError("the stream has ended")

    def until(self, kind: str, **facts: Any) -> dict[str, Any]:
        """The next event of this kind with these facts."""
        while True:
            event = self.next()
            if event["kind"] == kind and facts.items() <= event.items():
                return event
