"""``a2mcp completion``: what makes a shell complete our verbs and options."""

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  eval "$(a2mcp completion bash)"      in ~/.bashrc
    zsh:   eval "$(a2mcp completion zsh)"       in ~/.zshrc
    fish:  a2mcp completion fish > ~/.config/fish/completions/a2mcp.fish
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - needed here only

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(ctx.find_root().command, {}, "a2mcp", "_A2MCP_COMPLETE").source())
