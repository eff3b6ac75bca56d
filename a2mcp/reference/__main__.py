"""``python -m a2mcp.reference FOLDER``: write the generated pages, or only look whether they are up to date."""

from __future__ import annotations

from pathlib import Path

import click

from a2mcp import reference


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when a page is out of date.")
@click.pass_context
def main(ctx: click.Context, folder: Path, *, check: bool) -> None:
    """Write the generated pages of the reference into FOLDER."""
    if not check:
        for path in reference.write(folder):
            click.echo(f"wrote {path}")
        return
    stale = reference.stale(folder)
    for path in stale:
        click.echo(f"{path} is out of date; run `make docs`", err=True)
    ctx.exit(int(bool(stale)))


main()
