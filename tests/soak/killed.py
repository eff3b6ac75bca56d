"""Clients of a daemon that is killed under them: what each call was, what became of it, and what the log must say.

A call writes a file, or has a command append to one, so that it can be seen whether it took effect. Every one has a name
of its own, which stands in its record.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
from typing import TYPE_CHECKING, Any

import msgspec
from harness import Client
from standard_client import Standard, legacy

if TYPE_CHECKING:
    from pathlib import Path

    from harness import Daemon

MARKS = "marks"
_NAME = re.compile(r"k\d+-\d+-\d+")
_GONE = (OSError, http.client.HTTPException, ValueError)
"""How a client learns that there is no daemon any more; a head or a body that ends early is no answer."""


class Call(msgspec.Struct):
    """One call as its client saw it."""

    name: str
    answered: bool = False


class Caller:
    """One client that calls and calls, until the daemon is gone or it has made its number of calls."""

    def __init__(self, daemon: Daemon, turn: int, number: int, most: int) -> None:
        self.calls: list[Call] = []
        self.wrong: list[str] = []
        self._prefix = f"k{turn}-{number}"
        self._most = most
        self._ask = self._standard(daemon) if number % 3 == 2 else self._bridge(daemon)
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        """Begin to call."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end, which is soon once the daemon is gone."""
        self._thread.join(30)
        assert not self._thread.is_alive(), "a client waits for a daemon that is gone"

    def _bridge(self, daemon: Daemon) -> Any:
        client = Client(daemon.port, daemon.token, timeout=20).initialize()
        daemon.closes(client)
        return lambda tool, arguments: client.call(tool, **arguments)

    def _standard(self, daemon: Daemon) -> Any:
        client = Standard(daemon, timeout=20)
        daemon.closes(client)
        return lambda tool, arguments: client.send(*legacy("tools/call", {"name": tool, "arguments": arguments}))

    def _run(self) -> None:
        with contextlib.suppress(*_GONE):
            for number in range(self._most):
                call = Call(f"{self._prefix}-{number}")
                self.calls.append(call)
                answer = self._ask(*self._what(call.name, number))
                call.answered = answer.status == 200
                if answer.status != 200 or answer.result.get("isError"):
                    self.wrong.append(f"{call.name}: {answer.status} {answer.body[:200]!r}")

    def _what(self, name: str, number: int) -> tuple[str, dict[str, Any]]:
        if number % 8 == 5:
            return "bash", {"command": f"echo x >> {MARKS}/{name}"}
        return "write", {"path": f"{MARKS}/{name}", "content": "x\n"}


class Records:
    """What the log says of each call, by its name."""

    def __init__(self, home: Path) -> None:
        self.starts: dict[str, list[str]] = {}
        self.ends: dict[str, list[str]] = {}
        for path in (home / "a2mcp.log.1", home / "a2mcp.log"):
            for line in path.read_bytes().splitlines() if path.exists() else ():
                with contextlib.suppress(msgspec.DecodeError):
                    self._take(msgspec.json.decode(line))

    def _take(self, record: dict[str, Any]) -> None:
        named = _NAME.search(str(record["args"]))
        if named:
            side = self.starts if record["phase"] == "start" else self.ends
            side.setdefault(named.group(), []).append(record["id"])

    def undone(self, prefix: str) -> set[str]:
        """The ids of the calls of a turn that have a start and no end."""
        return {ids[0] for name, ids in self.starts.items() if name.startswith(prefix) and name not in self.ends}


def judge(calls: list[Call], records: Records, marks: set[str]) -> list[str]:
    """Every way in which the log does not say what happened."""
    broken = []
    for call in calls:
        starts, ends = records.starts.get(call.name, []), records.ends.get(call.name, [])
        if call.answered and (not starts or not ends):
            broken.append(f"P2: {call.name} was answered, and has {len(starts)} starts and {len(ends)} ends")
        if call.name in marks and not starts:
            broken.append(f"P3: {call.name} took effect, and has no start")
        if ends and not starts:
            broken.append(f"P3: {call.name} has an end, and no start")
        if ends and call.name not in marks:
            broken.append(f"P3: {call.name} has an end, and took no effect")
        if max(len(starts), len(ends)) > 1 or (ends and ends != starts):
            broken.append(f"{call.name} is recorded as {starts} and {ends}")
    return broken
