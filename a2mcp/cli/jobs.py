"""``a2mcp jobs``: commands that outlived their calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from a2mcp.cli import show

if TYPE_CHECKING:
    from a2mcp.http.ports import JobFacts


@click.command()
@show.json_option
def jobs(*, as_json: bool) -> None:
    """List the commands that outlived their calls."""
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    found = OperatorClient(show.current_home()).jobs()
    if as_json:
        show.as_document(found)
    elif not found:
        click.echo("There are no jobs.")
    else:
        show.table(
            ("ID", "STATE", "PID", "EXIT", "STARTED", "BYTES", "COMMAND"),
            map(_row, found),
        )


def _row(one: JobFacts) -> tuple[str, ...]:
    exit_code, size = _or_dash(one.exit_code), str(one.output_bytes)
    return one.id, one.state, _or_dash(one.pid), exit_code, show.moment(one.started_at), size, one.command


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
