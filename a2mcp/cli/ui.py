"""``a2mcp ui``: open the operator's page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from a2mcp.cli import show

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.option("--print", "only_print", is_flag=True, help="Print the link and open nothing.")
def ui(*, only_print: bool) -> None:
    """Open the operator's page in a browser.

    It shows what callers do, live, and has the means to stop it.
    The link works once and for two minutes.
    """
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    home = show.current_home()
    link = OperatorClient(home).invite()
    if only_print or not _open(link.url, home.root / "page.html"):
        click.echo(link.url)
        return
    click.echo("The page is open in the browser. If it is not, run `a2mcp ui --print`.")


def _open(url: str, doorway: Path) -> bool:
    """Have a browser open a link; False when there is none.

    SECURITY: every user of this machine can read the arguments of a browser that starts, so it is given a file that
    only this user can read. The code in it is worth nothing once it was followed.
    """
    import webbrowser  # noqa: PLC0415 - as above

    from a2mcp.files import write_atomic  # noqa: PLC0415 - as above

    page = (
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={url}"><title>a2mcp</title>\n'
    )
    write_atomic(doorway, page.encode(), mode=0o600, sync=False)
    try:
        return webbrowser.open(doorway.as_uri())
    except webbrowser.Error:
        return False
