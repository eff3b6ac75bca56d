"""``a2mcp top``: the calls in flight."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from a2mcp.cli import show

if TYPE_CHECKING:
    from a2mcp.http.facts import CallFacts

EVERY_S: Final = 1.0
_HEADERS: Final = ("CALL", "TOOL", "STATE", "FOR", "CLIENT", "SESSION", "ARGUMENTS")


@click.command()
@click.option("--once", is_flag=True, help="Print them once and end.")
@click.option("--cancel", multiple=True, metavar="CALL", help="End this call instead, and what runs for it.")
@show.json_option
def top(*, once: bool, cancel: tuple[str, ...], as_json: bool) -> None:
    """Show the calls in flight, the oldest first, until Ctrl-C."""
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    client = OperatorClient(show.current_home())
    if cancel:
        for call in cancel:
            client.cancel(call)
            click.echo(f"cancelled {call}")
        return
    calls = client.calls()
    if as_json:
        show.as_document(calls)
    elif once or not sys.stdout.isatty():
        show.table(_HEADERS, map(_row, calls))
    else:
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                click.clear()
                show.table(_HEADERS, map(_row, calls))
                time.sleep(EVERY_S)
                calls = client.calls()


def _row(call: CallFacts) -> tuple[str, ...]:
    return (
        call.call_id,
        call.tool,
        "waiting" if call.waiting else "running",
        show.duration(call.elapsed_s),
        call.client or "-",
        call.session_id or "-",
        bytes(call.args).decode("utf-8", "replace"),
    )
