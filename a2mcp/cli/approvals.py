"""``a2mcp approvals``: what waits for the operator, and what the operator has allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from a2mcp.cli import show

if TYPE_CHECKING:
    from a2mcp.cli.client import OperatorClient


@click.command()
@click.option("--granted", is_flag=True, help="List instead what is allowed beyond one call.")
@click.option("--revoke", multiple=True, metavar="ID", help="Ask about it again; `--granted` has the IDs.")
@show.json_option
def approvals(*, granted: bool, revoke: tuple[str, ...], as_json: bool) -> None:
    """List the calls that wait for your word.

    Answer with `a2mcp approve ID` or `a2mcp deny ID`.
    """
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    client = OperatorClient(show.current_home())
    if revoke:
        for one in revoke:
            grant = client.revoke(one)
            click.echo(f"revoked {grant.id}: {show.visible(grant.tool)} is asked about again")
    elif granted:
        _granted(client, as_json=as_json)
    else:
        _waiting(client, as_json=as_json)


def _waiting(client: OperatorClient, *, as_json: bool) -> None:
    waiting = client.approvals()
    if as_json:
        show.as_document(waiting)
    elif not waiting:
        click.echo("Nothing waits for approval.")
    else:
        rows = (
            (one.id, one.tool, show.duration(one.waiting_s), show.short(one.session_id), one.args) for one in waiting
        )
        show.table(("ID", "TOOL", "WAITING", "SESSION", "ARGUMENTS"), rows)


def _granted(client: OperatorClient, *, as_json: bool) -> None:
    grants = client.grants()
    if as_json:
        show.as_document(grants)
    elif not grants:
        click.echo("Nothing is allowed beyond one call.")
    else:
        rows = (
            (
                one.id,
                one.tool,
                show.short(one.session_id or "everybody"),
                show.moment(one.since),
                one.until or "revoked",
            )
            for one in grants
        )
        show.table(("ID", "TOOL", "FOR", "SINCE", "UNTIL"), rows)
