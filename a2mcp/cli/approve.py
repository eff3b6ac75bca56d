"""``a2mcp approve``: let a waiting call go on."""

import click

from a2mcp.cli import show


@click.command()
@click.argument("call", nargs=-1, required=True, metavar="ID...")
def approve(call: tuple[str, ...]) -> None:
    """Let waiting calls go on. `a2mcp approvals` has their IDs."""
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    client = OperatorClient(show.current_home())
    for one in call:
        client.answer(one, approve=True)
        click.echo(f"approved {one}")
