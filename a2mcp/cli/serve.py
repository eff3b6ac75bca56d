"""``a2mcp serve``: the daemon in the foreground."""

import click

from a2mcp.cli.show import current_home


@click.command()
@click.pass_context
def serve(ctx: click.Context) -> None:
    """Run the daemon here, until Ctrl-C or `a2mcp stop`."""
    ctx.exit(ctx.obj["serve"](current_home()))
