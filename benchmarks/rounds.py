"""What is measured, in which order, and for how long.

A round starts every server anew, then puts each load on one server after the other before the next load begins: so what
the machine does beside (a warm processor, another program) falls on all servers alike. Idle servers take no processor
time. Figures are medians over the rounds.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.bench.errors import HandshakeFailed
from a2mcp.bench.histogram import Histogram
from a2mcp.bench.plan import Plan, Step, resolve
from a2mcp.bench.session import open_session
from benchmarks import crowd, watchers
from benchmarks.catalog import HELLO, OURS
from benchmarks.loader import LoadFailed, Sample
from benchmarks.servers import DidNotStart, running

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.catalog import Server, Workplace
    from benchmarks.loader import Loader
    from benchmarks.servers import Running

CLIENTS: Final = (1, 16, 64)
TEXT: Final = "hello from the benchmark"
SMALL_FILE: Final = "".join(f"line {number} of a small file that is read again and again\n" for number in range(20))


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How long a run takes."""

    rounds: int
    seconds: float
    """Of one measurement."""
    echo_seconds: float
    """Of one measurement of ``tools/call`` echo, which the bars are about."""
    warmup: float
    limit: float
    """Seconds after which nothing new is begun."""


FULL: Final = Pace(rounds=3, seconds=1.2, echo_seconds=2.4, warmup=0.3, limit=660)
QUICK: Final = Pace(rounds=1, seconds=0.6, echo_seconds=1.2, warmup=0.2, limit=180)


class Operation(msgspec.Struct, frozen=True):
    """One thing to ask for."""

    name: str
    step: Step
    expect: str


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of one server."""

    server: str
    operation: str
    clients: int
    round: int
    sample: Sample


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """One number that is no load: memory in MB, or a duration in ms."""

    server: str
    name: str
    round: int
    value: float


class Findings(msgspec.Struct, kw_only=True):
    """Everything a run found, as it was measured."""

    figures: list[Figure] = msgspec.field(default_factory=list)
    gauges: list[Gauge] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)
    rounds: int = 0


def operations(work: Workplace) -> tuple[Operation, ...]:
    """What every MCP server is asked for. ``initialize`` comes last: it leaves sessions behind."""
    return (
        Operation("ping", Step(method="ping"), '"result"'),
        Operation("tools/list", Step(method="tools/list"), '"echo"'),
        Operation("echo", Step(tool="echo", args={"text": TEXT}), TEXT),
        Operation("read", Step(tool="read", args={"path": str(work.small)}), "line 19 of a small file"),
        Operation("initialize", Step(method="initialize"), '"protocolVersion"'),
    )


_BASH: Final = Operation("bash true", Step(tool="bash", args={"command": "true"}), '"result"')


class Rounds:
    """One run over all servers."""

    def __init__(
        self, servers: list[Server], work: Workplace, loader: Loader, pace: Pace, say: Callable[[str], None]
    ) -> None:
        self._servers = servers
        self._work = work
        self._loader = loader
        self._pace = pace
        self._say = say
        self._findings = Findings()
        self._round = 0
        self._deadline = 0.0

    def run(self) -> Findings:
        """Measure everything; what failed is in ``problems`` and missing from the figures.

        Raises:
            DidNotStart: our own server; without it there is nothing to compare.
        """
        self._work.small.write_text(SMALL_FILE)
        self._deadline = time.monotonic() + self._pace.limit
        for number in range(1, self._pace.rounds + 1):
            self._round = number
            try:
                self._one_round()
            except TimeoutError as error:
                self._problem(str(error))
                break
            self._findings.rounds = number
        return self._findings

    def _one_round(self) -> None:
        with contextlib.ExitStack() as stack:
            alive = {server: self._start(stack, server) for server in self._servers}
            running_now = {server: process for server, process in alive.items() if process is not None}
            for operation in operations(self._work):
                self._say(f"round {self._round}/{self._pace.rounds}: {operation.name}")
                self._on_all(list(running_now), operation)
                if operation.name == "echo":
                    for server, process in running_now.items():
                        self._gauge(server, "memory after load MB", process.memory_mb())
            for server, process in running_now.items():
                if server.name == OURS:
                    self._only_ours(server, process)

    def _start(self, stack: contextlib.ExitStack, server: Server) -> Running | None:
        try:
            process = stack.enter_context(running(server, self._work))
            if server.speaks_mcp:
                open_session(self._plan(server, Step(method="ping"), 1, 0))
        except (DidNotStart, HandshakeFailed) as error:
            if server.name == OURS:
                raise DidNotStart(f"{server.name} did not start: {error}") from error
            self._problem(f"{server.name} did not start: {error}")
            return None
        self._gauge(server, "startup ms", process.startup_ms)
        self._gauge(server, "memory idle MB", process.memory_mb())
        return process

    def _on_all(self, servers: list[Server], operation: Operation) -> None:
        for clients in CLIENTS:
            for server in servers:
                if server.speaks_mcp or operation.name == "echo":
                    self._load(server, operation, clients)

    def _only_ours(self, server: Server, process: Running) -> None:
        self._say(f"round {self._round}/{self._pace.rounds}: {_BASH.name}, and the crowds")
        self._commands(server)
        try:
            self._crowds(server, process)
        except (HandshakeFailed, OSError) as error:
            self._problem(f"{server.name}, beside a crowd: {error}")

    def _load(self, server: Server, operation: Operation, clients: int, label: str | None = None) -> None:
        if time.monotonic() > self._deadline:
            raise TimeoutError(f"the time was up in round {self._round}, before {operation.name} of {server.name}")
        seconds = self._pace.echo_seconds if operation.name == "echo" else self._pace.seconds
        plan = self._plan(server, operation.step, clients, seconds)
        name = label or operation.name
        try:
            sample = self._loader.put(plan, TEXT if server.name == HELLO else operation.expect)
        except (LoadFailed, HandshakeFailed) as error:
            self._problem(f"{server.name}, {name}, {clients} clients: {error}")
            return
        if sample.errors:
            self._problem(f"{server.name}, {name}, {clients} clients: {sample.errors} wrong replies")
        figure = Figure(server=server.name, operation=name, clients=clients, round=self._round, sample=sample)
        self._findings.figures.append(figure)

    def _crowds(self, server: Server, process: Running) -> None:
        """The same load at 16 clients: alone, watched, beside idle connections, beside calls that go on hanging."""
        echo = next(each for each in operations(self._work) if each.name == "echo")
        plan = self._plan(server, echo.step, 1, 0)
        self._load(server, echo, 16, "echo alone")
        with watchers.watching(server):
            self._load(server, echo, 16, "echo beside watching")
        if lost := watchers.missed(server):
            self._problem(f"{lost} events are not in the store")
        with crowd.idle(plan) as sockets:
            self._load(server, echo, 16, "echo beside idle")
            self._undisturbed("idle connections", crowd.disturbed(sockets))
        with crowd.hanging(plan) as sockets:
            self._load(server, echo, 16, "echo beside hanging")
            self._gauge(server, "memory hanging MB", process.memory_mb())
            self._undisturbed("hanging calls", crowd.disturbed(sockets))

    def _undisturbed(self, what: str, count: int) -> None:
        if count:
            self._problem(f"{count} {what} were answered or closed")

    def _commands(self, server: Server) -> None:
        """``bash true`` through us, between two looks at what it costs alone, because machines change by the second."""
        self._bare_command()
        for clients in CLIENTS:
            self._load(server, _BASH, clients)
            if clients == 1:
                self._bare_command()

    def _bare_command(self) -> None:
        """``bash -c true`` by ``subprocess.run`` alone: what a command costs on this machine."""
        histogram = Histogram()
        until = time.perf_counter() + self._pace.seconds
        while (begun := time.perf_counter()) < until:
            subprocess.run(["bash", "-c", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
            histogram.record(int((time.perf_counter() - begun) * 1e6))
        self._gauge(OURS, "bare bash ms", histogram.percentile(0.5) / 1000)

    def _plan(self, server: Server, step: Step, clients: int, seconds: float) -> Plan:
        return Plan(
            address=resolve(f"http://127.0.0.1:{server.port}{server.path}"),
            steps=(step,),
            clients=clients,
            seconds=seconds,
            warmup=self._pace.warmup,
            token=server.token,
            session=server.speaks_mcp,
        )

    def _gauge(self, server: Server | str, name: str, value: float) -> None:
        who = server if isinstance(server, str) else server.name
        self._findings.gauges.append(Gauge(server=who, name=name, round=self._round, value=round(value, 2)))

    def _problem(self, text: str) -> None:
        self._findings.problems.append(text)
        self._say(f"  ! {text}")
