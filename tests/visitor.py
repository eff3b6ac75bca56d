"""A visitor of the operator's page without a browser: the link followed, and both halves of the visit sent along."""

from __future__ import annotations

import json
from typing import Any

from harness import Answer, Client, Daemon
from watchers import operator


def link_of(daemon: Daemon) -> str:
    """A fresh link, as ``a2mcp ui`` asks for one."""
    return str(operator(daemon, "POST", "/page")[1]["url"])


class Visitor:
    """One visit that goes on."""

    def __init__(self, daemon: Daemon) -> None:
        self.client: Client = daemon.client(token=None)
        self.origin = f"http://127.0.0.1:{daemon.port}"
        code = link_of(daemon).partition("#")[2]
        self.entered = self.enter(code)
        assert self.entered.status == 200, self.entered.body
        self.cookie = self.entered.headers["set-cookie"].partition(";")[0]
        self.key = self.entered.json["key"]

    def enter(self, code: str) -> Answer:
        """Follow a link."""
        return self.client.send("POST", "/ui/enter", code.encode(), Origin=self.origin)

    def ask(self, method: str, path: str, body: Any = None, **headers: str | None) -> Answer:
        """Ask as the page does. Headers replace the usual ones; None leaves one out."""
        sent = {"Cookie": self.cookie, "X_A2MCP_Page": self.key, "Origin": self.origin} | headers
        data = None if body is None else json.dumps(body).encode()
        return self.client.send(method, f"/ui/api/{path}", data, **sent)
