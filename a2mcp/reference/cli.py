"""The page of the command line: verbs, options and exit codes, from the commands and the error tree."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Any, Final

import click

from a2mcp.cli.main import VERBS, cli
from a2mcp.reference.errors import by_exit_code
from a2mcp.reference.markdown import code, head, table

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTRODUCTION: Final = """
`a2mcp VERB`, or `python -m a2mcp VERB`. The verbs `stop`, `status`, `token`, `rotate`, `approvals`, `approve`, `deny`,
`ui`, `jobs`, `tunnel` and `obtain` ask the running daemon of the same home over its
[operator's channel](operator-channel.md).
Where a verb prints facts, `--json` prints them for programs. A table becomes tab-separated lines when the output is no
terminal.

An error is one line on stderr that begins with `a2mcp:`; what to do about it follows on the next.
"""

_EXIT_CODES: Final = {
    0: "Done.",
    1: "It failed.",
    2: "Wrong usage, or settings or files that cannot be used.",
    3: "Another daemon serves this home.",
    4: "No address to listen on.",
    5: "No daemon runs for this home.",
    6: "`call`: the tool failed.",
    7: "`call`: the server refused.",
    8: "`call`: the server could not be reached. The tool may have run.",
    9: "`call`: no answer in time. The tool may have run.",
}


def page() -> str:
    """Write the page."""
    return (
        head("Command line", "the commands in a2mcp/cli") + _INTRODUCTION + _exit_codes() + "".join(map(_verb, VERBS))
    )


def _exit_codes() -> str:
    names = by_exit_code()
    rows = (
        (str(number), meaning, ", ".join(code(name) for name in names.get(number, ())))
        for number, meaning in _EXIT_CODES.items()
    )
    return (
        "\n## Exit codes\n\n" + table(("code", "meaning", "errors"), rows) + "\n"
        "`start` passes on the code of a daemon that dies at once. `serve` ends with 1 when it was told to stop twice "
        "or gave up.\n"
    )


def _verb(name: str) -> str:
    context = click.Context(cli, info_name="a2mcp")
    command = cli.get_command(context, name)
    if command is None:
        raise AssertionError(f"no command '{name}'")
    usage = " ".join(["a2mcp", name, *command.collect_usage_pieces(click.Context(command, context, name))])
    options = [param for param in command.params if isinstance(param, click.Option)]
    listed = table(("option", "meaning"), map(_option, options)) + "\n" if options else ""
    return f"\n## {name}\n\n```text\n{usage}\n```\n\n{_help(command)}\n\n{listed}".rstrip() + "\n"


def _help(command: click.Command) -> str:
    return "\n\n".join(_paragraphs(inspect.cleandoc(command.help or "")))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield f"```text\n{textwrap.dedent(paragraph[2:])}\n```"
        else:
            yield " ".join(paragraph.split())


def _option(option: click.Option) -> tuple[str, str]:
    names = ", ".join(code(_with_value(name, option)) for name in (*option.opts, *option.secondary_opts))
    # What click would add to the help of an option that shows its default.
    default = f"  [default: {option.default}]" if option.show_default else ""
    return names, re.sub(r"  \[default: (.*)\]", r" Default: `\1`.", (option.help or "") + default)


def _with_value(name: str, option: click.Option) -> str:
    return name if option.is_flag else f"{name} {option.metavar or _value(option.type)}"


def _value(kind: click.ParamType[Any]) -> str:
    if isinstance(kind, click.Choice):
        return "|".join(str(choice) for choice in kind.choices)
    return {"integer range": "N", "float range": "X", "file": "FILE"}.get(kind.name) or kind.name.upper()
