"""``a2mcp version``: which release this is."""

import platform
import sys

import click

from a2mcp import __version__
from a2mcp.cli import show


@click.command()
@show.json_option
def version(*, as_json: bool) -> None:
    """Print the version."""
    if as_json:
        python = ".".join(str(part) for part in sys.version_info[:3])
        show.as_document({"version": __version__, "python": python, "platform": platform.platform()})
    else:
        click.echo(f"a2mcp {__version__}")
