"""A daemon that serves while its system calls fail: what one operation does, call by call, and the same with a fault."""

from __future__ import annotations

import contextlib
import http.client
import json
from typing import TYPE_CHECKING, Any

from harness import Client, Daemon, until
from tracing import WATCHED, Came, Point, attached, came, few_of_each, points, threads_of

from a2mcp.cli.client import OperatorClient
from a2mcp.config.paths import home_from_environment
from a2mcp.errors import A2mcpError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from a2mcp.policy.grants import Grant

    Operation = Callable[["Live"], None]


class Live(Daemon):
    """A daemon and one client of it, which are replaced when a fault has ended them."""

    client_: Client
    said_ = 0
    lasting_ = 0
    """How many threads are there for good; those after them are workers, which come and go."""
    granted_: Grant | None = None
    """The grant that was acknowledged last."""
    warm: tuple[Operation, ...] = ()
    """What is done once after each start, so that the next time the same threads do it and no module is loaded."""

    def begin(self) -> Live:
        """Start it, and do once what loads a module when it is first done."""
        self.start()
        self.lasting_ = len(threads_of(self.process.pid))
        self.client_ = self.session()
        self.operator = OperatorClient(home_from_environment(self.environment))
        self.operator.status()
        for operation in self.warm:
            operation(self)
        until((self.home / "events.db-wal").exists, what="the store of events is open")
        return self

    def ask(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool; the result, whatever it says."""
        return self.client_.call(tool, **arguments).result

    def news(self) -> str:
        """What it has said since this was asked last."""
        said = self.stderr
        self.said_, before = len(said), self.said_
        return said[before:]

    def use_token(self) -> None:
        """Go on with the token in force."""
        self.learn()
        self.token = self.client_.token = self.operator.token()

    def counts(self) -> dict[str, int]:
        """What became of the records so far; the start of this call is among the written."""
        counts: dict[str, int] = json.loads(self.ask("counts")["content"][0]["text"])
        return counts

    def watch(self, operation: Operation, *, only: Sequence[Path] = (), times: int = 1) -> list[Point]:
        """What an operation does that can be made to fail.

        Args:
            operation: what to do.
            only: the files whose calls are looked at and counted; none: all.
            times: how often it is done.
        """
        log = self.home.with_name("watched")
        threads = threads_of(self.process.pid)
        with attached(log, threads, [*_paths(only), "-e", f"trace={','.join(WATCHED)}"]):
            for _ in range(times):
                operation(self)
        return few_of_each([point for point in points(log, threads) if point.faults], "/proc/", 4)

    def broken(
        self, operation: Operation, point: Point, fault: str, *, only: Sequence[Path] = (), peers: Sequence[int] = ()
    ) -> Came:
        """Do an operation with one fault; whether it came to that.

        Args:
            operation: what to do.
            point: which call is to fail.
            fault: how.
            only: the files whose calls are counted, as they were when it was watched.
            peers: threads that take turns in doing it.
        """
        log = self.home.with_name("broken")
        threads = self._who(point.thread, peers)
        with attached(log, threads, [*_paths(only), *point.inject(fault)]):
            if fault == "KILL":
                with contextlib.suppress(OSError, http.client.HTTPException, A2mcpError, AssertionError):
                    operation(self)
            else:
                operation(self)
        return came(log, point, fault)

    def _who(self, thread: int, peers: Sequence[int]) -> list[int]:
        """The threads of which one will do what this one did."""
        now = threads_of(self.process.pid)
        if thread >= self.lasting_:
            # A call goes to any idle worker, and there may be more of them than there were.
            return now[self.lasting_ :]
        return [now[index] for index in (peers if thread in peers else (thread,))]

    def again(self) -> None:
        """Replace a daemon that was killed."""
        self.kill()
        self._clients.clear()
        self.begin()


def _paths(only: Sequence[Path]) -> list[str]:
    return [option for path in only for option in ("-P", str(path))]
