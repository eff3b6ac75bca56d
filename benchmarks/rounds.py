"""What is measured, in which order, and for how long.

A round starts every server once, one after the other, and measures everything on it; there are several rounds, so that
what the machine does beside (a warm processor, another program) falls on all servers alike. Figures are medians.
"""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.bench.errors import HandshakeFailed
from a2mcp.bench.histogram import Histogram
from a2mcp.bench.plan import Plan, Step, resolve
from a2mcp.bench.session import open_session
from benchmarks import crowd
from benchmarks.catalog import HELLO, OURS
from benchmarks.loader import LoadFailed, Sample
from benchmarks.servers import DidNotStart, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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

    def run(self) -> Findings:
        """Measure everything; what failed is in ``problems`` and missing from the figures."""
        self._work.small.write_text(SMALL_FILE)
        begun = time.monotonic()
        for number in range(1, self._pace.rounds + 1):
            self._round = number
            for server in self._servers:
                if time.monotonic() - begun > self._pace.limit:
                    self._problem(f"the time was up in round {self._round}, before {server.name}")
                    return self._findings
                self._say(f"round {self._round}/{self._pace.rounds}: {server.name} {server.version}")
                self._one(server)
            self._findings.rounds = self._round
        return self._findings

    def _one(self, server: Server) -> None:
        try:
            with running(server, self._work) as process:
                self._gauge(server, "startup ms", process.startup_ms)
                self._measure(server, process)
        except DidNotStart as error:
            self._problem(f"{server.name} did not start: {error}")
        except (HandshakeFailed, OSError) as error:
            self._problem(f"{server.name}: {error}")

    def _measure(self, server: Server, process: Running) -> None:
        if server.speaks_mcp:
            open_session(self._plan(server, Step(method="ping"), 1, 0))
        self._gauge(server, "memory idle MB", process.memory_mb())
        for operation in self._operations_of(server):
            for clients in CLIENTS:
                self._load(server, operation, clients)
            if operation.name == "echo":
                self._gauge(server, "memory after load MB", process.memory_mb())
        if server.name == OURS:
            self._commands(server)
            self._crowds(server, process)

    def _operations_of(self, server: Server) -> Iterator[Operation]:
        for operation in operations(self._work):
            if server.speaks_mcp or operation.name == "echo":
                yield operation

    def _load(self, server: Server, operation: Operation, clients: int, label: str | None = None) -> None:
        seconds = self._pace.echo_seconds if operation.name == "echo" else self._pace.seconds
        plan = self._plan(server, operation.step, clients, seconds)
        name = label or operation.name
        try:
            sample = self._loader.put(plan, TEXT if server.name == HELLO else operation.expect)
        except LoadFailed as error:
            self._problem(f"{server.name}, {name}, {clients} clients: {error}")
            return
        if sample.errors:
            self._problem(f"{server.name}, {name}, {clients} clients: {sample.errors} wrong replies")
        figure = Figure(server=server.name, operation=name, clients=clients, round=self._round, sample=sample)
        self._findings.figures.append(figure)

    def _crowds(self, server: Server, process: Running) -> None:
        """The same load at 16 clients: alone, beside calls that hang, beside connections that idle."""
        echo = next(each for each in operations(self._work) if each.name == "echo")
        plan = self._plan(server, echo.step, 1, 0)
        self._load(server, echo, 16, "echo alone")
        with crowd.hanging(plan) as sockets:
            self._load(server, echo, 16, "echo beside hanging")
            self._gauge(server, "memory hanging MB", process.memory_mb())
            self._undisturbed("hanging calls", crowd.disturbed(sockets))
        with crowd.idle(plan) as sockets:
            self._load(server, echo, 16, "echo beside idle")
            self._undisturbed("idle connections", crowd.disturbed(sockets))

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
            address=resolve(f"http://127.0.0.1:{self._work.port}{server.path}"),
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
