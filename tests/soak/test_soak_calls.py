"""Calls of every kind, for a long time: each is answered as it should be, and the daemon stays as it was."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import wire
from crowd import callers, drive, post
from figures import Course, in_flight, of
from harness import running, until
from inflight import unpaired

if TYPE_CHECKING:
    from pathlib import Path

    from figures import Figures
    from harness import Daemon

CALLS = of(6_000, 100_000)
BATCHES = of(30, 100)
CONNECTIONS = 16
GROWTH_MB = 1.5
"""Of the last third over the one before: 100,000 calls that leave 50 bytes each would show."""


class Mix:
    """Requests of every kind, and the status that each is to be answered with."""

    def __init__(self, daemon: Daemon, folder: Path) -> None:
        self._token = daemon.token
        self._session = str(daemon.session().session)
        (folder / "small.txt").write_text("a line\n" * 20)
        small, written = str(folder / "small.txt"), str(folder / "written.txt")
        self._kinds: list[tuple[int, int, bytes]] = [
            (25, 200, self._tool("read", path=small)),
            (10, 200, self._tool("no-such-tool", x="y" * 500)),
            (8, 200, self._tool("write", path=written, content="written " * 50)),
            (4, 200, self._tool("read", path="/no/such/file")),
            (3, 200, self._tool("read", path=5)),
            (3, 200, self._tool("glob", path=str(folder), pattern="*.txt")),
            (1, 200, self._tool("grep", path=small, pattern="line")),
            (1, 200, self._tool("bash", command="echo one; echo two >&2")),
            (1, 200, self._tool("jobs", action="list")),
            (14, 200, self._post(wire.message("ping"))),
            (6, 200, self._post(wire.message("tools/list"))),
            (2, 200, self._post(wire.message("no/such/method"))),
            (2, 200, self._post(wire.INITIALIZE)),
            (2, 404, post(self._token, "no-such-session", {"jsonrpc": "2.0", "id": 1, "method": "ping"})),
            (4, 400, self._post(b'{"jsonrpc":')),
            (6, 200, wire.post(wire.call("read", path=small), self._token, path="/mcp")),
            (4, 200, wire.post(wire.message("tools/list"), self._token, path="/mcp")),
            (2, 400, wire.post(wire.message("ping"), self._token, "MCP-Protocol-Version: none", path="/mcp")),
            (1, 200, wire.head("GET /healthz HTTP/1.1", "Host: localhost")),
            (1, 404, wire.head("GET /xfer/ HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self._token}")),
        ]
        assert sum(weight for weight, _, _ in self._kinds) == 100

    def draw(self, count: int, chance: random.Random) -> list[tuple[int, bytes]]:
        """So many of them, by their weight."""
        weights = [weight for weight, _, _ in self._kinds]
        return [(status, data) for _, status, data in chance.choices(self._kinds, weights, k=count)]

    def _tool(self, tool: str, /, **arguments: Any) -> bytes:
        return self._post(wire.call(tool, **arguments))

    def _post(self, body: bytes) -> bytes:
        return wire.post(body, self._token, session=self._session)


def test_mixed_calls_leave_memory_threads_and_descriptors_flat(tmp_path: Path, figures: Figures) -> None:
    """Issue 5, section 3: 100,000 mixed calls; reference, section 0 row 22."""
    chance = random.Random(5)
    with running(tmp_path / "home") as daemon:
        mix, course = Mix(daemon, tmp_path), Course(daemon)
        answered: Counter[int] = Counter()
        for _ in range(BATCHES):
            drawn = [mix.draw(CALLS // BATCHES // CONNECTIONS, chance) for _ in range(CONNECTIONS)]
            with callers(daemon.port, [[data for _, data in requests] for requests in drawn]) as crowd:
                drive(crowd)
                for caller, requests in zip(crowd, drawn, strict=True):
                    assert [status for status, _ in caller.answers] == [status for status, _ in requests]
                    answered.update(status for status, _ in caller.answers)
            until(lambda: in_flight(daemon) == 0, what="quiet")
            course.sample()
        daemon.alive()
        stderr = daemon.stderr
        records = daemon.audit()

    course.note_in(figures)
    figures.note(requests=answered.total())
    assert stderr == ""
    # The log is a window: what its beginning lacks are starts, never an end.
    assert unpaired(records) == set()
    assert max(course.threads[-BATCHES // 3 :]) <= max(course.threads[: BATCHES // 3]) + 2
    assert max(course.descriptors[-BATCHES // 3 :]) <= max(course.descriptors[: BATCHES // 3]) + 3
    assert course.growth_mb() < GROWTH_MB
