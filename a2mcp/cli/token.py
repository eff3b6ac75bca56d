"""``a2mcp token``: the full token, for a client's settings."""

import click

from a2mcp.cli import show


@click.command()
@show.json_option
def token(*, as_json: bool) -> None:
    """Print the token that clients must send."""
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    current = OperatorClient(show.current_home()).token()
    if as_json:
        show.as_document({"token": current})
    else:
        click.echo(current)
