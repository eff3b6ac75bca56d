"""``a2mcp connect``: make an MCP client know this daemon."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from a2mcp.cli import show, target
from a2mcp.errors import A2mcpError, UnusableFile

if TYPE_CHECKING:
    from a2mcp.connect.clients import Client, Server
    from a2mcp.connect.connection import Report

NAMES: Final = ("claude-code", "claude-desktop", "codex", "cursor", "vscode", "gemini", "opencode", "omp")
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_NAME: Final = r"[A-Za-z0-9_-]{1,64}"


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """What click parsed; the names are those of the options."""

    client: str
    name: str
    stdio: bool
    inline_token: bool
    url: str | None
    token_file: Path | None
    no_cli: bool
    dry_run: bool


@click.command(short_help="Make an MCP client know this daemon.")
@click.argument("client", type=click.Choice([*NAMES, "json"]), metavar="CLIENT")
@click.option("--name", default="a2mcp", show_default=True, help="The server's name there.")
@click.option("--stdio", is_flag=True, help="Have the client start `a2mcp stdio`: needs no token, finds any port.")
@click.option("--inline-token", is_flag=True, help="Write the token into the file instead of a reference to it.")
@click.option("--url", help="Another server than the local daemon.")
@click.option("--token-file", type=_FILE, help="Its token, for --inline-token.")
@click.option("--no-cli", is_flag=True, help="Edit the file even if the client has a command for it.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
def connect(**options: Any) -> None:
    """Make an MCP client know this daemon.

    CLIENT is claude-code, claude-desktop, codex, cursor, vscode, gemini, opencode or omp; json prints what any other
    client's file needs.

    The client's own command is used where it has one, else its file is edited: comments, order, links and mode stay,
    and a dated backup is kept beside it. `a2mcp disconnect` takes it back.
    """
    asked = _Options(**options)
    _refuse_contradictions(asked)
    if asked.client == "json":
        _print_snippet(asked)
        return
    from a2mcp.connect import clients, connection  # noqa: PLC0415 - the help needs none of it

    client = clients.CLIENTS[asked.client]
    path = client.file(clients.place(os.environ, sys.platform))
    server = _server(asked, client)
    try:
        report = connection.connect(client, path, server, own=not asked.no_cli, dry=asked.dry_run)
    except OSError as error:
        raise UnusableFile(f"{path} cannot be written: {error.strerror}.", hint="It is as it was.") from error
    _tell(asked, client, server, report)


def _refuse_contradictions(asked: _Options) -> None:
    import re  # noqa: PLC0415 - as above

    if not re.fullmatch(_NAME, asked.name):
        raise click.UsageError("--name takes letters, digits, - and _, at most 64.")
    if asked.stdio and (asked.url or asked.inline_token):
        raise click.UsageError(
            "--stdio reaches the local daemon and needs no token: leave --url and --inline-token out."
        )
    if asked.url and asked.client == "claude-desktop":
        raise click.UsageError("Claude Desktop starts `a2mcp stdio`, which reaches the local daemon only.")
    if asked.token_file and not (asked.url and asked.inline_token):
        raise click.UsageError("--token-file belongs to --url with --inline-token.")


def _server(asked: _Options, client: Client) -> Server:
    from a2mcp.connect.clients import Server  # noqa: PLC0415 - as above

    if asked.stdio or client.http is None:
        return Server(name=asked.name, command=(*_ourselves(), "stdio"), environment=_our_environment())
    if asked.url:
        token = target.token(asked.token_file) if asked.inline_token else None
        return Server(name=asked.name, url=asked.url, token=token)
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - as above

    daemon = OperatorClient(show.current_home())
    facts = daemon.status()
    token = daemon.token() if asked.inline_token else None
    return Server(name=asked.name, url=facts.bridge_url if client.bridge else facts.url, token=token)


def _ourselves() -> tuple[str, ...]:
    """Say how a client shall start us: by an absolute path, because it may know another PATH."""
    beside = Path(sys.executable).with_name("a2mcp")
    script = str(beside) if beside.exists() else shutil.which("a2mcp")
    return (str(Path(script).absolute()),) if script else (sys.executable, "-P", "-m", "a2mcp")


def _our_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("A2MCP_HOME", "A2MCP_CONFIG") if os.environ.get(name)}


def _print_snippet(asked: _Options) -> None:
    from a2mcp.connect.clients import CLIENTS  # noqa: PLC0415 - as above

    client = CLIENTS["claude-code"]
    server = _server(asked, client)
    show.as_document({client.holder: {server.name: client.entry(server)}})
    if not server.command and server.token is None:
        click.echo(client.token_note, err=True)


def _tell(asked: _Options, client: Client, server: Server, report: Report) -> None:
    from a2mcp.connect.connection import Done  # noqa: PLC0415 - as above

    if report.done is Done.UNCHANGED:
        click.echo(f"{client.title} knows {server.name} already ({report.path}).")
        return
    show_change(report, dry=asked.dry_run)
    if asked.dry_run:
        return
    click.echo(f"{client.title} knows {server.name} now ({report.path}).")
    for line in _notes(client, server, report):
        click.echo(line)


def _notes(client: Client, server: Server, report: Report) -> list[str]:
    notes = [f"What was there before: {report.backup}"] if report.backup else []
    if server.token is not None:
        notes.append("The token is in that file, which only you can read now (mode 0600).")
    elif not server.command:
        notes.append(client.token_note)
    if not server.command and _port_changes():
        notes.append(
            "The settings say port 0: the address is another one after every start. Set a port, or use --stdio."
        )
    return [*notes, client.restart]


def _port_changes() -> bool:
    from a2mcp.config import load  # noqa: PLC0415 - as above

    try:
        loaded = load.inspect(show.current_home().config)
    except A2mcpError:
        return False
    return loaded is not None and loaded.settings.port == 0


def show_change(report: Report, *, dry: bool) -> None:
    """Print a command that was run, or the lines that change."""
    import shlex  # noqa: PLC0415 - as above

    if report.command:
        click.echo(("would run: " if dry else "ran: ") + shlex.join(report.command))
    elif dry:
        click.echo(f"{report.path} would change:\n{report.diff}")
