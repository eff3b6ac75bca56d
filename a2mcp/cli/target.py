"""Which server a verb talks to: the daemon of this home, or the one that ``--url`` names."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from a2mcp.cli import show
from a2mcp.errors import A2mcpError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2mcp.connect.mcp_call import CallError, Client

TOKEN_VARIABLE: Final = "A2MCP_TOKEN"  # noqa: S105 - the name of a variable
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


class CallFailed(A2mcpError):
    """A call brought no result; the exit code says in which way."""

    def __init__(self, error: CallError, hint: str = "") -> None:
        super().__init__(f"{str(error)[:1].upper()}{str(error)[1:]}.", hint=hint)
        self.exit_code = error.exit_code  # type: ignore[misc]


def options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options that name another server."""
    for option in (
        click.option(
            "--timeout", type=click.FloatRange(0.1), default=60.0, help="Seconds for one call.  [default: 60]"
        ),
        click.option("--token-file", type=_FILE, help=f"The token for --url; else {TOKEN_VARIABLE} is used."),
        click.option("--url", help="Ask this server instead of the local daemon."),
    ):
        verb = option(verb)
    return verb


@contextlib.contextmanager
def server(url: str | None, token_file: Path | None, timeout: float) -> Iterator[Client]:
    """Give a client of the server; its session ends with the block.

    Raises:
        CallFailed: whatever a call inside the block did not get.
        NoDaemon: no server was named and no daemon runs.
    """
    from a2mcp.connect.mcp_call import CallError, Client  # noqa: PLC0415 - the help needs no HTTP client

    if url is None and token_file is not None:
        raise click.UsageError("--token-file belongs to --url: the local daemon's token is known.")
    address, secret = _local() if url is None else (url, token(token_file))
    try:
        with contextlib.closing(Client(address, secret, timeout)) as client:
            yield client
    except CallError as error:
        raise CallFailed(error) from error


def _local() -> tuple[str, str]:
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - as above

    daemon = OperatorClient(show.current_home())
    return daemon.status().url, daemon.token()


def token(path: Path | None) -> str:
    """Read another server's token from a file, or else from the environment.

    Raises:
        CallFailed: it cannot be read, or is none.
    """
    from a2mcp.connect.mcp_call import CallError, read_token  # noqa: PLC0415 - as above

    try:
        return read_token(path, os.environ)
    except CallError as error:
        raise CallFailed(error) from error
