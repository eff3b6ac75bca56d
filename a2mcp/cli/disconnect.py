"""``a2mcp disconnect``: make an MCP client forget this daemon."""

from __future__ import annotations

import os
import sys

import click

from a2mcp.cli.connect import NAMES, show_change
from a2mcp.errors import UnusableFile


@click.command(short_help="Make an MCP client forget this daemon.")
@click.argument("client", type=click.Choice(NAMES), metavar="CLIENT")
@click.option("--name", default="a2mcp", show_default=True, help="The server's name there.")
@click.option("--no-cli", is_flag=True, help="Edit the file even if the client has a command for it.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
def disconnect(*, client: str, name: str, no_cli: bool, dry_run: bool) -> None:
    """Make an MCP client forget this daemon.

    A file that nobody else changed since gets back the bytes it had; from any other one the server is taken out.
    """
    from a2mcp.connect import clients, connection  # noqa: PLC0415 - the help needs none of it

    chosen = clients.CLIENTS[client]
    path = chosen.file(clients.place(os.environ, sys.platform))
    try:
        report = connection.disconnect(chosen, path, name, own=not no_cli, dry=dry_run)
    except OSError as error:
        raise UnusableFile(f"{path} cannot be written: {error.strerror}.", hint="It is as it was.") from error
    if report.done is connection.Done.ABSENT:
        click.echo(f"{chosen.title} does not know {name} ({path}).")
        return
    show_change(report, dry=dry_run)
    if dry_run:
        return
    restored = report.done is connection.Done.RESTORED
    click.echo(f"{chosen.title} has forgotten {name} ({path}{', as it was before' if restored else ''}).")
    if report.backup:
        click.echo(f"What was there before: {report.backup}")
    click.echo(chosen.restart)
