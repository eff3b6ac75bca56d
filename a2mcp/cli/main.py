"""The command ``a2mcp``: which verbs there are, and what their errors mean to a shell.

Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 another daemon serves this home, 4 cannot listen, 5 no daemon
runs; 6 to 9 are those of ``call``: the tool failed, refused, unreachable, timed out. They come from the error tree; no
verb chooses one by itself.

``a2mcp/__main__.py`` calls ``cli`` with a dictionary as the context's object: its ``serve`` is the function that runs a
daemon in the foreground, ``serve(home) -> exit code``. So this package never imports the living side.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

import click

from a2mcp import __version__
from a2mcp.errors import A2mcpError

VERBS: Final = (
    "serve",
    "start",
    "stop",
    "status",
    "token",
    "rotate",
    "approvals",
    "approve",
    "deny",
    "ui",
    "observe",
    "top",
    "audit",
    "jobs",
    "tunnel",
    "host-llm",
    "obtain",
    "stdio",
    "connect",
    "disconnect",
    "tools",
    "call",
    "bench",
    "doctor",
    "install-service",
    "completion",
    "version",
)
"""In the order of the help. The verb ``x-y`` is the object ``x_y`` in the module ``a2mcp.cli.x_y``."""


class LazyGroup(click.Group):
    """A group that imports a verb when it is asked for it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the verbs in the order a newcomer needs them."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module; None for a name that is no verb."""
        del ctx
        if cmd_name not in VERBS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"a2mcp.cli.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; a name that is almost one is met with the name that was meant."""
        if args and args[0] not in VERBS:
            import difflib  # noqa: PLC0415 - for a mistyped verb only

            near = difflib.get_close_matches(args[0], VERBS, n=1)
            if near:
                ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; an error of ours is one line, its hint another, and its exit code."""
        try:
            return super().invoke(ctx)
        except A2mcpError as error:
            click.echo(f"a2mcp: {error.text}", err=True)
            if error.hint:
                click.echo(f"       {error.hint}", err=True)
            ctx.exit(error.exit_code)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="a2mcp", message="%(prog)s %(version)s")
def cli() -> None:
    """Lend this machine's hands to any MCP client.

    Settings are in a2mcp.json; A2MCP_HOME names one folder for everything. Exit codes: 0 done, 1 failed, 2 wrong usage
    or settings, 3 another daemon serves this home, 4 cannot listen, 5 no daemon runs; of a call also 6 the tool failed,
    7 refused, 8 unreachable, 9 timed out.
    """
