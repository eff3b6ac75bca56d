"""Starts a server, tells how long it took and how much memory it holds, and ends it by its own process id."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import subprocess
import time
from typing import IO, TYPE_CHECKING, Final

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.catalog import Server, Workplace

_START_SECONDS: Final = 20.0
_STOP_SECONDS: Final = 5.0
_FILES: Final = 4096
MB: Final = 1024 * 1024


class DidNotStart(Exception):
    """A server ended, or did not listen in time; the text ends with what it said last."""


class Running:
    """A server that accepts connections."""

    def __init__(self, process: subprocess.Popen[bytes], startup_ms: float) -> None:
        self._process = psutil.Process(process.pid)
        self.startup_ms = startup_ms
        """From starting the process to its first accepted connection."""

    def memory_mb(self) -> float:
        """Resident memory of the process and its children."""
        total = int(self._process.memory_info().rss)
        for child in self._process.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                total += child.memory_info().rss
        return total / MB


def allow_files() -> None:
    """Let this process, and the servers it starts, hold a thousand connections and more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _FILES:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (_FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard), hard)
        )


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(server: Server, work: Workplace) -> Iterator[Running]:
    """Start a server, and end it when the block is left.

    Raises:
        DidNotStart: see there.
    """
    log = work.folder / f"server-{server.port}.log"
    with log.open("wb") as output:
        begun = time.perf_counter()
        process = _spawn(server, output)
        try:
            _await_port(process, server.port, log)
            yield Running(process, (time.perf_counter() - begun) * 1000)
        finally:
            _end(process)


def _spawn(server: Server, output: IO[bytes]) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("A2MCP_")}
    if server.home is not None:
        environment["A2MCP_HOME"] = str(server.home)
    return subprocess.Popen(
        server.command,
        cwd=server.cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _await_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.002)
    said = log.read_text(errors="replace").strip().splitlines()
    raise DidNotStart(said[-1] if said else "it said nothing")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
