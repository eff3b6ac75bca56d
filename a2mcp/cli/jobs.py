"""``a2mcp jobs``: commands that outlived their calls."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click

from a2mcp.cli import show
from a2mcp.errors import A2mcpError

if TYPE_CHECKING:
    from a2mcp.cli.client import OperatorClient
    from a2mcp.http.facts import JobFacts

_GOES_ON: Final = frozenset({"running", "background", "orphan"})
_PATIENCE_S: Final = 8.0
"""TERM, its grace, KILL, and some."""
_LOOK_S: Final = 0.05


@click.command()
@click.option("--stop", "ids", multiple=True, metavar="ID", help="End this one and all it started; may be repeated.")
@show.json_option
def jobs(ids: tuple[str, ...], *, as_json: bool) -> None:
    """List the commands that outlived their calls, or end some.

    A job is `running`, or in the `background`: its shell has ended and something it started has not. An `orphan` was
    left by a daemon that was killed. All but orphans end with the daemon.
    """
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    client = OperatorClient(show.current_home())
    for one in ids:
        _stop(client, one)
    if ids:
        return
    found = client.jobs()
    if as_json:
        show.as_document(found)
    elif not found:
        click.echo("There are no jobs.")
    else:
        show.table(
            ("ID", "STATE", "PID", "EXIT", "STARTED", "BYTES", "COMMAND"),
            map(_row, found),
        )


def _stop(client: OperatorClient, job: str) -> None:
    """End a job and wait for its end."""
    client.stop_job(job)
    deadline = time.monotonic() + _PATIENCE_S
    while any(one.id == job and one.state in _GOES_ON for one in client.jobs()):
        if time.monotonic() > deadline:
            raise A2mcpError(
                f"{job} still runs after {_PATIENCE_S:g} s.",
                hint="What became another user's can only be ended by them.",
            )
        time.sleep(_LOOK_S)
    click.echo(f"ended {job}")


def _row(one: JobFacts) -> tuple[str, ...]:
    pids = " ".join(map(str, one.processes)) or _or_dash(one.pid)
    exit_code, size = _or_dash(one.exit_code), str(one.output_bytes)
    return one.id, one.state, pids, exit_code, show.moment(one.started_at), size, one.command


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
