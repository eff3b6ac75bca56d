"""``a2mcp bench``: measure any MCP server over Streamable HTTP."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2mcp.bench.load import Progress
    from a2mcp.bench.plan import Era, Plan, Step
    from a2mcp.bench.result import Result

_TOKEN_VARIABLE: Final = "A2MCP_BENCH_TOKEN"  # noqa: S105 - the name of a variable
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEW_FILE: Final = click.Path(dir_okay=False, writable=True, path_type=Path)
_DEFAULT_SECONDS: Final = 10.0


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """What click parsed; the names are those of the options."""

    url: str
    clients: int
    calls: int | None
    seconds: float | None
    warmup: float
    think: float
    timeout: float
    tool: str | None
    arguments: str | None
    method: str | None
    mix: Path | None
    token_file: Path | None
    session: bool
    era: str
    as_json: bool
    svg: Path | None
    yes_remote: bool


@click.command("bench", short_help="Measure any MCP server over HTTP.")
@click.argument("url")
@click.option("-c", "--clients", type=click.IntRange(1, 10_000), default=16, show_default=True, help="Clients at once.")
@click.option("--calls", type=click.IntRange(1), help="Stop after so many calls.")
@click.option("--seconds", type=click.FloatRange(0.1, 86_400), help="Stop after so many seconds.  [default: 10]")
@click.option("--warmup", type=click.FloatRange(0, 3600), default=1.0, help="Seconds not counted.  [default: 1]")
@click.option("--think", type=click.FloatRange(0, 3_600_000), default=0.0, help="Pause between two calls, in ms.")
@click.option("--timeout", type=click.FloatRange(0.1, 3600), default=30.0, help="Seconds for a reply.  [default: 30]")
@click.option("--tool", help="Call this tool.")
@click.option("--args", "arguments", help="The tool's arguments, as a JSON object.")
@click.option("--method", help="Call this method instead of a tool.  [default: ping, or server/discover]")
@click.option("--mix", type=_FILE, help="Call a weighted mix, from a JSON file.")
@click.option("--token-file", type=_FILE, help=f"The bearer token; else {_TOKEN_VARIABLE} is used.")
@click.option("--session/--no-session", default=True, help="Do the handshake and use its session, or just call.")
@click.option("--era", type=click.Choice(["legacy", "modern"]), default="legacy", help="2025-11-25 or 2026-07-28.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--svg", type=_NEW_FILE, help="Draw the latencies to a file.")
@click.option("--yes-remote", is_flag=True, help="I may put load on this machine, though it is not mine.")
def bench(**options: Any) -> None:
    """Send calls to the MCP server at URL and say how fast it answered.

    Every client asks, waits for the answer, and asks again. All clients share one session. A mix is a JSON list:

    \b
      [{"weight": 9, "tool": "echo", "args": {"text": "hi"}},
       {"weight": 1, "method": "tools/list"}]

    The token is never taken from the command line, where every user of the machine could read it:

    \b
      A2MCP_BENCH_TOKEN=$(a2mcp token) a2mcp bench http://127.0.0.1:8080/

    Exit codes: 0 all calls succeeded, 1 some failed, 2 wrong usage.
    """
    asked = _Options(**options)
    result = _run(_plan(asked), show_progress=not asked.as_json)
    _report(result, asked)
    click.get_current_context().exit(1 if result.failed or result.gave_up else 0)


def _plan(asked: _Options) -> Plan:
    from a2mcp.bench.plan import Era, Plan, resolve  # noqa: PLC0415 - `a2mcp --help` must not pay for it

    if asked.calls is not None and asked.seconds is not None:
        raise click.UsageError("Give --calls or --seconds, not both.")
    era = Era(asked.era)
    return Plan(
        address=resolve(asked.url, allow_remote=asked.yes_remote),
        steps=_steps(asked, era),
        era=era,
        clients=asked.clients,
        calls=asked.calls,
        seconds=asked.seconds or _DEFAULT_SECONDS,
        warmup=asked.warmup,
        think_ms=asked.think,
        timeout=asked.timeout,
        token=_token(asked.token_file),
        session=asked.session,
    )


def _steps(asked: _Options, era: Era) -> tuple[Step, ...]:
    from a2mcp.bench.plan import Step, one_tool, read_mix  # noqa: PLC0415 - as above

    if sum(choice is not None for choice in (asked.tool, asked.method, asked.mix)) > 1:
        raise click.UsageError("Give one of --tool, --method and --mix.")
    if asked.arguments is not None and asked.tool is None:
        raise click.UsageError("--args belongs to --tool.")
    if asked.mix is not None:
        return read_mix(asked.mix)
    if asked.tool is not None:
        return one_tool(asked.tool, asked.arguments or "{}")
    return (Step(method=asked.method or era.cheapest),)


def _token(path: Path | None) -> str | None:
    from a2mcp.bench.messages import check_token  # noqa: PLC0415 - as above

    if path is not None:
        return check_token(path.read_text(encoding="utf-8", errors="replace"))
    given = os.environ.get(_TOKEN_VARIABLE)
    return check_token(given) if given else None


def _run(plan: Plan, *, show_progress: bool) -> Result:
    from a2mcp.bench.run import run  # noqa: PLC0415 - as above

    if not (show_progress and sys.stderr.isatty()):
        return run(plan)
    with _live() as progress:
        return run(plan, progress)


@contextlib.contextmanager
def _live() -> Iterator[Callable[[Progress], None]]:
    """A progress bar on stderr, drawn from the measuring thread ten times a second: no thread competes with it."""
    from rich import progress as bars  # noqa: PLC0415 - as above
    from rich.console import Console  # noqa: PLC0415 - as above

    columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), bars.TaskProgressColumn())
    with bars.Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True) as display:
        task = display.add_task("connecting", total=1.0)

        def show(state: Progress) -> None:
            failed = f", {state.errors:,} failed" if state.errors else ""
            text = "warming up" if state.warming_up else f"{state.calls:,} calls{failed}"
            display.update(task, completed=state.share, description=text, refresh=True)

        yield show


def _report(result: Result, asked: _Options) -> None:
    if asked.svg is not None:
        from a2mcp.bench.chart import distribution  # noqa: PLC0415 - as above

        asked.svg.write_text(distribution(result), encoding="utf-8")
    if asked.as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(result)).decode())
        return
    from rich.console import Console  # noqa: PLC0415 - as above

    from a2mcp.bench.terminal import show  # noqa: PLC0415 - as above

    show(result, Console())
