"""``a2mcp start``: the daemon in the background."""

import click

from a2mcp.cli import show


@click.command()
@show.json_option
def start(*, as_json: bool) -> None:
    """Run the daemon in the background and print its address."""
    from a2mcp.cli import background  # noqa: PLC0415 - the help needs no HTTP client

    facts = background.start(show.current_home())
    if as_json:
        show.as_document(facts)
    else:
        click.echo(f"a2mcp listening on {facts.bridge_url} (token {facts.token_prefix})")
