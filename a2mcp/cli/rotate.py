"""``a2mcp rotate``: another token."""

import click

from a2mcp.cli import show


@click.command()
@show.json_option
def rotate(*, as_json: bool) -> None:
    """Replace the token and print the new one.

    The old one stops working at once. Calls in flight finish. Every client needs the new token.
    """
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    new = OperatorClient(show.current_home()).rotate()
    if as_json:
        show.as_document({"token": new})
        return
    click.echo(new)
    click.echo("The old token no longer works. Put this one into the settings of your clients.", err=True)
