"""``a2mcp stop``: end the daemon in the background."""

import click

from a2mcp.cli import show


@click.command()
@click.option("--wait", type=click.FloatRange(min=0), help="Seconds to wait; by default a little over drain_s.")
def stop(wait: float | None) -> None:
    """End the daemon and wait until it is gone.

    Calls in flight may finish, for drain_s seconds at most.
    """
    from a2mcp.cli import background  # noqa: PLC0415 - the help needs no HTTP client

    background.stop(show.current_home(), wait)
    click.echo("a2mcp stopped")
