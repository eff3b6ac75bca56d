"""``a2mcp deny``: end a waiting call."""

import click

from a2mcp.cli import show


@click.command()
@click.argument("call", nargs=-1, required=True, metavar="ID...")
@click.option("--reason", default="", help="What the caller is told.")
def deny(call: tuple[str, ...], reason: str) -> None:
    """End waiting calls without running them. `a2mcp approvals` has their IDs."""
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client
    from a2mcp.policy.grants import Word  # noqa: PLC0415

    client = OperatorClient(show.current_home())
    for one in call:
        client.answer(one, Word(approve=False, reason=reason))
        click.echo(f"denied {one}")
