"""``a2mcp stdio``: the daemon, for a client that only starts local programs."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import TYPE_CHECKING, Any

import click

from a2mcp.cli import show

if TYPE_CHECKING:
    from a2mcp.config.paths import Home
    from a2mcp.stdio.finder import Finder


@click.command(short_help="Speak MCP on standard input and output.")
@click.option("--no-start", is_flag=True, help="Answer with an error when no daemon runs, instead of starting one.")
def stdio(*, no_start: bool) -> None:
    """Pass MCP messages, one on a line, between standard input and the daemon.

    For clients that start a program instead of opening an address. It needs no token and finds the daemon again after a
    restart, whatever its port. It ends at the end of its input, when the answers that are still to come have come. A
    request that the daemon cannot be given is answered with the error -32000.
    """
    from a2mcp.stdio import pipes  # noqa: PLC0415 - the help needs no HTTP client
    from a2mcp.stdio.bridge import Bridge  # noqa: PLC0415 - as above

    source, output = pipes.take()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    with contextlib.closing(source):
        Bridge(_finder(show.current_home(), may_start=not no_start), source, output, _say).run()


def _finder(home: Home, *, may_start: bool) -> Finder:
    from a2mcp.cli import background  # noqa: PLC0415 - as above
    from a2mcp.config import endpoint, instance  # noqa: PLC0415 - as above
    from a2mcp.stdio.finder import Finder  # noqa: PLC0415 - as above

    return Finder(
        read=lambda: endpoint.read(home.endpoint),
        served=lambda: instance.is_served(home),
        start=(lambda: background.start(home)) if may_start else None,
    )


def _leave(*_: Any) -> None:
    """End as at the end of the input, without waiting for anything."""
    sys.exit(0)


def _say(text: str) -> None:
    click.echo(f"a2mcp stdio: {show.visible(text)}", err=True)
