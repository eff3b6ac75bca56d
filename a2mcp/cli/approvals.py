"""``a2mcp approvals``: what waits for the operator."""

import click

from a2mcp.cli import show


@click.command()
@show.json_option
def approvals(*, as_json: bool) -> None:
    """List the calls that wait for your word.

    Answer with `a2mcp approve ID` or `a2mcp deny ID`.
    """
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    waiting = OperatorClient(show.current_home()).approvals()
    if as_json:
        show.as_document(waiting)
    elif not waiting:
        click.echo("Nothing waits for approval.")
    else:
        rows = ((one.id, one.tool, show.duration(one.waiting_s), one.session_id or "-", one.args) for one in waiting)
        show.table(("ID", "TOOL", "WAITING", "SESSION", "ARGUMENTS"), rows)
