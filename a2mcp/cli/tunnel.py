"""``a2mcp tunnel``: a public address for this daemon, opened and closed by whoever sits here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from a2mcp.cli import show

if TYPE_CHECKING:
    from a2mcp.cli.client import OperatorClient
    from a2mcp.tunnel.passage import TunnelFacts

_LARGEST_TOKEN: Final = 1 << 14
_PASSING: Final = ("obtaining", "opening", "closing")


@click.command()
@click.argument("action", type=click.Choice(["start", "stop", "status"]), default="start")
@click.option("--provider", metavar="NAME", help="cloudflared (a name by chance) or cloudflared-named.")
@click.option("--hostname", metavar="NAME", help="Of cloudflared-named: the name that the tunnel has at Cloudflare.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Of cloudflared-named: a file with the tunnel's token. Without it: the variable TUNNEL_TOKEN.",
)
@show.json_option
def tunnel(action: str, provider: str | None, hostname: str | None, token_file: Path | None, *, as_json: bool) -> None:
    """Open a public address for the daemon, or close it.

    Whoever knows the address still needs the token. The whole port is behind it: both dialects, and what is shared
    under /xfer/. Starting a tunnel that is open shows its address. It is closed with the daemon at the latest.
    """
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    client = OperatorClient(show.current_home())
    if action == "start":
        facts = _settled(client, client.open_tunnel(_wish(provider, hostname, token_file)))
    elif action == "stop":
        facts = _settled(client, client.close_tunnel())
    else:
        facts = client.tunnel()
    _print(facts, as_json=as_json)
    if action == "start" and facts.state != "open":
        from a2mcp.errors import CannotTunnel  # noqa: PLC0415 - as above

        raise CannotTunnel(f"The tunnel is not open: {show.visible(facts.error or facts.state)}")


def _wish(provider: str | None, hostname: str | None, token_file: Path | None) -> dict[str, str]:
    given = {"provider": provider, "hostname": hostname, "token": _token(provider, token_file)}
    return {name: value for name, value in given.items() if value is not None}


def _token(provider: str | None, token_file: Path | None) -> str | None:
    """Read the token of a named tunnel: never from the arguments, which every user of this machine can see."""
    if token_file is not None:
        from a2mcp.errors import UnusableFile  # noqa: PLC0415 - as above
        from a2mcp.files import read_bounded  # noqa: PLC0415 - as above

        try:
            return read_bounded(token_file, _LARGEST_TOKEN).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UnusableFile(f"{token_file} does not hold a token: {error}.") from error
    return os.environ.get("TUNNEL_TOKEN") if provider == "cloudflared-named" else None


def _settled(client: OperatorClient, facts: TunnelFacts) -> TunnelFacts:
    """Wait until it is open or closed, and show how a download goes on meanwhile."""
    from a2mcp.cli import progress  # noqa: PLC0415 - as above

    with progress.Watch() as watch:
        while facts.state in _PASSING:
            watch.show(next((one for one in client.programs() if one.state == "downloading"), None))
            facts = client.tunnel()
    return facts


def _print(facts: TunnelFacts, *, as_json: bool) -> None:
    if as_json:
        show.as_document(facts)
    elif facts.url is not None:
        click.echo(facts.url)
        click.echo(f"Open since {facts.since}. `a2mcp tunnel stop` closes it.", err=True)
    else:
        click.echo(f"The tunnel is {facts.state}.")
