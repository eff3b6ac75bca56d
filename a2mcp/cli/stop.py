"""``a2mcp stop``: end the daemon through its own channel; nothing is ever signalled."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click

from a2mcp.cli import show
from a2mcp.cli.client import OperatorClient
from a2mcp.config import instance, load
from a2mcp.errors import A2mcpError

if TYPE_CHECKING:
    from a2mcp.config.paths import Home

_LOOK_S: Final = 0.02
_GRACE_S: Final = 10.0
"""On top of the time that calls in flight have."""


@click.command()
@click.option("--wait", type=click.FloatRange(min=0), help="Seconds to wait; by default a little over drain_s.")
def stop(wait: float | None) -> None:
    """End the daemon and wait until it is gone.

    Calls in flight may finish, for drain_s seconds at most.
    """
    home = show.current_home()
    OperatorClient(home).stop()
    patience = _patience(home) if wait is None else wait
    deadline = time.monotonic() + patience
    # The lock, not the pid: a dead process that its parent has not collected still has one.
    while instance.is_served(home):
        if time.monotonic() >= deadline:
            raise A2mcpError(
                f"The daemon is still there after {patience:.0f} s.", hint="It was asked to stop and goes on draining."
            )
        time.sleep(_LOOK_S)
    click.echo("a2mcp stopped")


def _patience(home: Home) -> float:
    try:
        loaded = load.inspect(home.config)
    except A2mcpError:
        loaded = None
    return _GRACE_S + (loaded.settings.drain_s if loaded else 30.0)
