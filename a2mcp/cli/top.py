"""``a2mcp top``: the calls in flight."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from a2mcp.cli import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2mcp.http.facts import CallFacts

EVERY_S: Final = 1.0
_HEADERS: Final = ("CALL", "TOOL", "STATE", "FOR", "CLIENT", "SESSION", "ARGUMENTS")


@click.command()
@click.option("--once", is_flag=True, help="Print them once and end.")
@click.option(
    "--cancel",
    multiple=True,
    metavar="CALL",
    help="End this call instead, and what runs for it; the beginning of its ID will do.",
)
@show.json_option
def top(*, once: bool, cancel: tuple[str, ...], as_json: bool) -> None:
    """Show the calls in flight, the oldest first, until Ctrl-C."""
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    client = OperatorClient(show.current_home())
    if cancel:
        for call in cancel:
            client.cancel(_whole(call, client.calls()))
            click.echo(f"cancelled {call}")
        return
    calls = client.calls()
    if as_json:
        show.as_document(calls)
    elif once or not sys.stdout.isatty():
        _print(calls)
    else:
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                click.clear()
                _print(calls)
                time.sleep(EVERY_S)
                calls = client.calls()


def _whole(begun: str, calls: Sequence[CallFacts]) -> str:
    """The id that begins so; what none begins with is left for the daemon to refuse."""
    found = [call.call_id for call in calls if call.call_id.startswith(begun)]
    if len(found) > 1 and begun not in found:
        raise click.UsageError(f"{len(found)} calls have an ID that begins with '{begun}'.")
    return found[0] if len(found) == 1 else begun


def _print(calls: Sequence[CallFacts]) -> None:
    if calls:
        show.table(_HEADERS, map(_row, calls))
    else:
        click.echo("No call is in flight.")


def _row(call: CallFacts) -> tuple[str, ...]:
    return (
        show.short(call.call_id),
        call.tool,
        "waiting" if call.waiting else "running",
        show.duration(call.elapsed_s),
        call.client or "-",
        show.short(call.session_id),
        bytes(call.args).decode("utf-8", "replace"),
    )
