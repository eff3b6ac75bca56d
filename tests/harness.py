"""A real daemon in a process of its own, and clients of the plainest kind, for tests that look from the outside.

The daemon gets a home in the test's folder, so nothing is written elsewhere and no port is fixed. Every wait here is for
something that happens, with a deadline after which the test fails.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from appended import whole_lines
from secrecy import require_uninherited, require_unsaid, require_unwritten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
DEADLINE_S = 20.0


def until(condition: Callable[[], Any], *, what: str, seconds: float = DEADLINE_S) -> Any:
    """Wait for a condition and return its value; fails, naming it, when it does not come true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {seconds} s")
        time.sleep(0.005)
    return value


def lasting_port() -> int:
    """A port that is free, and below those that the system gives to whoever asks for none: it stays free over a restart."""
    for _ in range(100):
        port = random.randrange(20_000, 32_000)
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Answer:
    """One HTTP response."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def result(self) -> Any:
        """The ``result`` of a JSON-RPC success."""
        assert self.status == 200, (self.status, self.body)
        return self.json["result"]

    @property
    def error(self) -> Any:
        """The ``error`` of a JSON-RPC failure."""
        return self.json["error"]

    @property
    def text(self) -> str:
        """The first text block of a tool's result."""
        return str(self.result["content"][0]["text"])


class Client:
    """One keep-alive connection that speaks the bridge; with a session of its own once it said ``initialize``."""

    def __init__(self, port: int, token: str | None, *, timeout: float = 30.0) -> None:
        self.port = port
        self.token = token
        self.session: str | None = None
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self._id = 0

    def send(self, method: str, path: str = "/", body: bytes | None = None, **headers: str | None) -> Answer:
        """Send one request. Headers are given with underscores; None leaves one of the usual ones out."""
        sent: dict[str, str | None] = {"Authorization": f"Bearer {self.token}" if self.token else None}
        sent["mcp-session-id"] = self.session
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        # http.client compares names as they are written, so a replaced one must not stand beside the usual one.
        unique = {name.lower(): (name, value) for name, value in sent.items()}
        self._connection.request(method, path, body, {n: v for n, v in unique.values() if v is not None})
        response = self._connection.getresponse()
        data = response.read()
        require_unsaid(str(response.headers).encode(errors="surrogateescape") + data, self.token)
        return Answer(response.status, {n.lower(): v for n, v in response.getheaders()}, data)

    def post(self, message: Any, path: str = "/", **headers: str | None) -> Answer:
        """Send one JSON body."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.send("POST", path, body, **headers)

    def ask(self, method: str, params: Any = None, **headers: str | None) -> Answer:
        """Send one JSON-RPC request with a fresh id."""
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method}
        if params is not None:
            message["params"] = params
        return self.post(message, **headers)

    def initialize(self) -> Client:
        """Open a session and use it from now on."""
        answer = self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
        assert answer.status == 200, answer.body
        self.session = answer.headers["mcp-session-id"]
        return self

    def call(self, tool: str, /, **arguments: Any) -> Answer:
        """Call a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Daemon:
    """A running ``a2mcp serve``."""

    def __init__(self, home: Path, *, settings: dict[str, Any] | None = None, argv: list[str] | None = None) -> None:
        self.home = home
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if settings is not None:
            (home / "a2mcp.json").write_text(json.dumps(settings))
            (home / "a2mcp.json").chmod(0o600)
        self._argv = argv or [sys.executable, "-m", "a2mcp", "serve"]
        self._clients: list[Any] = []
        self.process: subprocess.Popen[bytes]
        self.stderr_path = home / "stderr.txt"
        self.tokens: set[str] = set()
        """Those that it was seen to have."""

    @property
    def environment(self) -> dict[str, str]:
        """What the daemon and the command line see."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("A2MCP_")}
        return kept | {"A2MCP_HOME": str(self.home), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}

    def start(self, **popen: Any) -> Daemon:
        """Start it and wait until it listens."""
        (self.home / "endpoint.json").unlink(missing_ok=True)
        with self.stderr_path.open("ab") as stderr:
            self.process = subprocess.Popen(
                self._argv, cwd=self.home, env=self.environment, stdout=subprocess.PIPE, stderr=stderr, **popen
            )
        assert self.process.stdout is not None
        self.greeting = self.process.stdout.readline().decode()
        if not self.greeting.startswith("a2mcp listening on "):
            self.kill()
            raise AssertionError(f"no daemon: {self.greeting!r} {self.stderr}")
        self.learn()
        return self

    def learn(self) -> None:
        """Read where it serves."""
        self.endpoint = json.loads((self.home / "endpoint.json").read_text())
        self.port = int(self.endpoint["bridge_url"].rsplit(":", 1)[1].strip("/"))
        self.token = str(self.endpoint["token"])
        self.tokens.add(self.token)

    def stop(self, number: int = signal.SIGTERM, *, seconds: float = 15.0) -> int:
        """Send a signal and wait for the end; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(seconds)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def kill(self) -> None:
        """End it whatever it does; used at the end of every test."""
        for client in self._clients:
            client.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def closes(self, client: Any) -> None:
        """Have a client closed when the daemon ends."""
        self._clients.append(client)

    def client(self, *, token: str | None = "", timeout: float = 30.0) -> Client:
        """A new connection without a session; ``token`` "" is the daemon's own."""
        client = Client(self.port, self.token if token == "" else token, timeout=timeout)
        self._clients.append(client)
        return client

    def session(self, *, timeout: float = 30.0) -> Client:
        """A new connection with a session."""
        return self.client(timeout=timeout).initialize()

    def raw(self, data: bytes, *, seconds: float = 5.0, half_close: bool = False) -> bytes:
        """Send bytes on a new socket and return everything that comes back until the daemon closes or goes quiet."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as sock:
            with contextlib.suppress(ConnectionError):
                sock.sendall(data)
                if half_close:
                    sock.shutdown(socket.SHUT_WR)
            received = b""
            with contextlib.suppress(TimeoutError, ConnectionError):
                while chunk := sock.recv(65536):
                    received += chunk
            return received

    def alive(self) -> None:
        """Fail unless a fresh client gets a session and a ping within a second each."""
        client = self.client(timeout=1.0).initialize()
        assert client.ask("ping").result == {}
        client.send("DELETE")
        client.close()
        self._clients.remove(client)

    def cli(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run an operator's command against this daemon's home."""
        return subprocess.run(
            [sys.executable, "-m", "a2mcp", *args], cwd=self.home, env=self.environment, input=stdin,
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip

    def audit(self) -> list[dict[str, Any]]:
        """Every record in both generations of the log, oldest first; of a daemon that is gone, all there is must be one."""
        paths = [path for name in ("a2mcp.log.1", "a2mcp.log") if (path := self.home / name).exists()]
        if self.process.poll() is None:
            return [json.loads(line) for path in paths for line in whole_lines(path)]
        return [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]

    @property
    def stderr(self) -> str:
        """What it has said so far."""
        return self.stderr_path.read_text(errors="replace")

    @property
    def rss_mb(self) -> float:
        """Resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def busy_share(self, *, seconds: float) -> float:
        """The share of one processor that it uses over a while."""
        process = psutil.Process(self.process.pid)
        before = process.cpu_times()
        threading.Event().wait(seconds)
        after = process.cpu_times()
        return (after.user + after.system - before.user - before.system) / seconds

    @property
    def descriptors(self) -> int:
        """How many files and sockets it has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


@contextlib.contextmanager
def running(home: Path, **options: Any) -> Iterator[Daemon]:
    """A daemon for the length of a block; killed at its end if it still runs. Its token must have leaked nowhere."""
    daemon = Daemon(home, **options).start()
    try:
        yield daemon
        require_uninherited(daemon.process.pid, daemon.tokens)
    finally:
        daemon.kill()
    require_unwritten(home, daemon.tokens)
