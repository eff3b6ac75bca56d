"""Puts load on a server: with the C client where there is a compiler, else with the one of ``a2mcp bench``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from a2mcp.bench.messages import FIRST_ID, make
from a2mcp.bench.run import run
from a2mcp.bench.session import open_session

if TYPE_CHECKING:
    from a2mcp.bench.plan import Plan

_SOURCE: Final = Path(__file__).resolve().parent / "load.c"
_GRACE: Final = 15.0


class LoadFailed(Exception):
    """The load could not be put on; the text says why."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement; latencies in microseconds."""

    calls_per_second: float
    p50: float
    p90: float
    p99: float
    max: float
    calls: int
    errors: int
    client_cpu_share: float


class Loader(Protocol):
    """Something that fulfils a plan of one step and gives the figures."""

    @property
    def name(self) -> str:
        """What the report calls it."""
        ...

    def put(self, plan: Plan, expect: str) -> Sample:
        """Run.

        Args:
            plan: one step, legacy era. Its session is opened anew, because other measurements may have evicted one.
            expect: a text in the body of every good reply.
        """
        ...


class PythonLoader:
    """The client of ``a2mcp bench``; it checks JSON-RPC itself, so ``expect`` is not needed."""

    name = "a2mcp bench"

    def put(self, plan: Plan, expect: str) -> Sample:  # noqa: ARG002 - see the class
        """Run."""
        result = run(plan)
        latency = result.latency_us
        return Sample(
            calls_per_second=result.calls_per_second,
            p50=latency.p50,
            p90=latency.p90,
            p99=latency.p99,
            max=latency.max,
            calls=result.calls,
            errors=result.failed,
            client_cpu_share=result.client_cpu_share,
        )


class CLoader:
    """The client of ``load.c``."""

    name = "load.c"

    def __init__(self, program: Path) -> None:
        self._program = program
        self._request = program.parent / "request.http"

    def put(self, plan: Plan, expect: str) -> Sample:
        """Run."""
        session = open_session(plan) if plan.session else None
        self._request.write_bytes(make(plan, plan.steps[0], session).render(FIRST_ID))
        numbers = (plan.address.port, plan.clients, plan.seconds, plan.warmup)
        command = [str(self._program), *map(str, numbers), str(self._request), expect]
        limit = plan.seconds + plan.warmup + _GRACE
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
        except subprocess.CalledProcessError as error:
            raise LoadFailed(error.stderr.strip() or "the client ended") from error
        except subprocess.TimeoutExpired as error:
            raise LoadFailed("the client did not end in time") from error
        return msgspec.json.decode(done.stdout, type=Sample)


def build(source: Path, folder: Path) -> Path | None:
    """Compile the C client into a folder. Returns ``None`` where no compiler is, or it refuses."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    program = folder / "load"
    command = [compiler, "-O2", "-Wall", "-Wextra", "-o", str(program), str(source)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    return program if done.returncode == 0 else None


def best(folder: Path) -> Loader:
    """The client that leaves most of the machine to the server."""
    program = build(_SOURCE, folder)
    return PythonLoader() if program is None else CLoader(program)
