"""What the tests of the stdio bridge share: a bridge in a process of its own, and one in a thread before a scripted server."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from harness import ROOT

sys.path.insert(0, str(Path(__file__).parent.parent / "connect"))

from scripted_server import Reply, Scripted

from a2mcp.config.endpoint import Endpoint
from a2mcp.stdio.bridge import Bridge
from a2mcp.stdio.finder import Finder
from a2mcp.stdio.pipes import Input, Output

WAIT_S = 20.0


def request(method, number=1, **params):
    """A request in a legacy version."""
    return {"jsonrpc": "2.0", "id": number, "method": method} | ({"params": params} if params else {})


def modern(method, number=1, **params):
    """A request in the version that needs no handshake."""
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}
    return request(method, number, **params, _meta=meta)


def handshake(version="2025-11-25", name="tests"):
    """The first request of a legacy client."""
    return request("initialize", 0, protocolVersion=version, capabilities={}, clientInfo={"name": name, "version": "1"})


def call(tool, number=1, **arguments):
    """A legacy call of a tool."""
    return request("tools/call", number, name=tool, arguments=arguments)


class Lines:
    """The client's end of the two pipes. Every line that comes must be one JSON object."""

    def __init__(self, into, out):
        self._into = into
        self._arrived = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(out,))
        self._reader.start()

    def _read(self, out):
        for line in out:
            self._arrived.put(json.loads(line))
        out.close()
        self._arrived.put(None)

    def send(self, *messages):
        """Send messages, or bytes as they are."""
        for message in messages:
            self._into.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self._into.flush()

    def read(self):
        """The next message; None when there will be no more."""
        return self._arrived.get(timeout=WAIT_S)

    def ask(self, message):
        """Send a request and return what comes next."""
        self.send(message)
        return self.read()

    def end(self):
        """Say nothing more; what is still said."""
        self._into.close()
        return list(iter(self.read, None))

    def close(self):
        """Let go of the pipes; the other side is gone."""
        if not self._into.closed:
            self._into.close()
        self._reader.join(WAIT_S)


def launch(home, *options, stdout):
    """Start a bridge for a home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("A2MCP_")}
    return subprocess.Popen(
        [sys.executable, "-m", "a2mcp", "stdio", *options],
        cwd=ROOT, env=kept | {"A2MCP_HOME": str(home), "PYTHONWARNINGS": "default"},
        stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE,
    )  # fmt: skip


class Program(Lines):
    """``a2mcp stdio`` as a client starts it."""

    def __init__(self, home, *options):
        self.process = launch(home, *options, stdout=subprocess.PIPE)
        super().__init__(self.process.stdin, self.process.stdout)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_S)
        super().close()
        self.process.stderr.close()


@pytest.fixture
def program():
    """Starts bridges for a home; ended with the test."""
    started = []

    def start(home, *options):
        started.append(Program(home, *options))
        return started[-1]

    yield start
    for each in started:
        each.close()


class Server(Scripted):
    """A server that also takes the responses of a client."""

    def answer(self, message):
        """Answer as a test said."""
        return super().answer(message) if "method" in message else Reply(202)

    @property
    def endpoint(self):
        """Where it is."""
        return Endpoint(url=self.url, bridge_url=self.url, token="t" * 40, pid=1, version="0", started_at="")

    def sent(self, method):
        """The headers that came with a method, by their lower-case names."""
        return [{k.lower(): v for k, v in headers.items()} for m, headers in self.seen if m.get("method") == method]


@pytest.fixture
def server():
    """A server on loopback that answers as it is told."""
    started = Server()
    yield started
    started.close()


@pytest.fixture
def lines(server):
    """A client whose bridge runs in a thread, before the scripted server; ``lines.said`` is what it reports."""
    near_in, far_in = os.pipe()
    near_out, far_out = os.pipe()
    said = []
    finder = Finder(lambda: server.endpoint, lambda: True, None)
    output = Output(far_out)
    source = Input(os.fdopen(near_in, "rb"))
    bridge = Bridge(finder, source, output, said.append)

    def run():
        bridge.run()
        os.close(far_out)

    thread = threading.Thread(target=run)
    thread.start()
    client = Lines(os.fdopen(far_in, "wb"), os.fdopen(near_out, "rb"))
    client.said = said
    yield client
    server.released.set()
    client.close()
    thread.join(WAIT_S)
    source.close()
