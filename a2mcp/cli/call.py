"""``a2mcp call``: one call of one tool, from a shell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from a2mcp.cli import show, target
from a2mcp.errors import A2mcpError

if TYPE_CHECKING:
    from a2mcp.connect.mcp_call import Client

_FOLDER: Final = click.Path(file_okay=False, path_type=Path)


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """What click parsed; the names are those of the options."""

    tool: str | None
    pairs: tuple[str, ...]
    document: str | None
    images: Path
    raw: bool
    url: str | None
    token_file: Path | None
    timeout: float
    print_client: bool


@click.command(short_help="Call a tool from the shell.")
@click.argument("tool", required=False)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--json", "document", metavar="OBJECT", help="The arguments as JSON; - reads standard input.")
@click.option("--images", type=_FOLDER, default=Path(), metavar="DIR", help="Where images go.  [default: here]")
@click.option("--raw", is_flag=True, help="Print the whole result as JSON.")
@target.options
@click.option("--print-client", is_flag=True, help="Print a client in one file, for another machine.")
@click.pass_context
def call(ctx: click.Context, /, **options: Any) -> None:
    """Call a tool and print its result.

    Values are read as the tool's schema says; a repeated key makes a list, and KEY:=JSON takes JSON.

    \b
      a2mcp call read path=/etc/hostname limit=5
      echo '{"command": "uname -a"}' | a2mcp call bash -
      a2mcp call --print-client | ssh host 'cat > mcp_call.py'

    Text goes to standard output, progress to standard error, an image to a new file whose name is printed.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 5 no daemon runs, 6 the tool failed, 7 refused, 8 unreachable, 9 timed
    out. After 8 and 9 the tool may have run all the same.
    """
    asked = _Options(**options)
    if asked.print_client:
        click.echo(_one_file(), nl=False)
        return
    if asked.tool is None:
        raise click.UsageError("Which tool? `a2mcp tools` lists them.")
    with target.server(asked.url, asked.token_file, asked.timeout) as server:
        result = _result(server, asked.tool, asked)
    _show(result, asked.tool, asked)
    if result.get("isError") is True:
        from a2mcp.connect.mcp_call import TOOL_FAILED  # noqa: PLC0415 - the help needs no HTTP client

        ctx.exit(TOOL_FAILED)


def _result(server: Client, tool: str, asked: _Options) -> dict[str, Any]:
    from a2mcp.connect.mcp_call import Refused, arguments_for, progress_line  # noqa: PLC0415 - as above

    try:
        arguments = arguments_for(server, tool, asked.pairs, asked.document)
        return server.call(tool, arguments, lambda params: click.echo(progress_line(params), err=True))
    except Refused:
        _find(server, tool)
        raise


def _find(server: Client, tool: str) -> None:
    """Say so when a call was refused because there is no such tool; what a server says is for programs."""
    from a2mcp.connect.mcp_call import CallError, Refused, find_tool  # noqa: PLC0415 - as above

    try:
        tools = server.tools()
    except CallError:
        return
    try:
        find_tool(tools, tool)
    except Refused as error:
        raise target.CallFailed(error, hint="`a2mcp tools` says what each is for.") from error


def _show(result: dict[str, Any], tool: str, asked: _Options) -> None:
    from a2mcp.connect.mcp_call import show_result  # noqa: PLC0415 - as above

    if asked.raw:
        show.as_document(result)
        return
    try:
        show_result(result, tool, asked.images, lambda text: click.echo(text, nl=False))
    except OSError as error:
        raise A2mcpError(f"The result cannot be written to {error.filename}: {error.strerror}.") from error


def _one_file() -> str:
    from a2mcp.connect import mcp_call  # noqa: PLC0415 - as above

    return Path(mcp_call.__file__).read_text(encoding="utf-8")
