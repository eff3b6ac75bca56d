"""``a2mcp tools``: what can be called, and with what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from a2mcp.cli import show, target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@click.command()
@click.argument("name", required=False)
@target.options
@show.json_option
def tools(*, name: str | None, url: str | None, token_file: Path | None, timeout: float, as_json: bool) -> None:
    """List the tools, or show what one of them takes.

    Call one with `a2mcp call`.
    """
    with target.server(url, token_file, timeout) as server:
        from a2mcp.connect.mcp_call import find_tool  # noqa: PLC0415 - the help needs no HTTP client

        found = server.tools()
        chosen = None if name is None else find_tool(found, name)
    if as_json:
        show.as_document(found if chosen is None else chosen)
    elif chosen is None:
        show.table(("NAME", "WHAT IT DOES"), ((tool["name"], _summary(tool)) for tool in found))
    else:
        _describe(chosen)


def _summary(tool: dict[str, Any]) -> str:
    """Return the first sentence, or the title."""
    first = str(tool.get("description") or tool.get("title") or "").strip().partition("\n")[0]
    sentence, stop, _ = first.partition(". ")
    return sentence + stop.strip()


def _describe(tool: dict[str, Any]) -> None:
    title = f"  {tool['title']}" if tool.get("title") else ""
    click.echo(show.visible(f"{tool['name']}{title}"))
    for line in str(tool.get("description") or "").splitlines():
        click.echo(show.visible(line))
    rows = list(_arguments(tool.get("inputSchema"), ""))
    click.echo()
    if rows:
        show.table(("ARGUMENT", "TYPE", "NEEDED", "DEFAULT", "MEANING"), rows, whole=("TYPE", "DEFAULT"))
    else:
        click.echo("It takes no arguments.")


def _arguments(schema: Any, prefix: str) -> Iterator[tuple[str, ...]]:
    """Give a row for each property, and for those of the objects inside it."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return
    needed = schema.get("required") or ()
    for name, inner in schema["properties"].items():
        one = inner if isinstance(inner, dict) else {}
        default = show.compact(one["default"]) if "default" in one else "-"
        meaning = " ".join(str(one.get("description") or "").split())
        yield prefix + name, _type(one), "yes" if name in needed else "no", default, meaning
        yield from _arguments(one, f"{prefix}{name}.")
        yield from _arguments(one.get("items"), f"{prefix}{name}[].")


def _type(schema: dict[str, Any]) -> str:
    if isinstance(schema.get("enum"), list):
        return " | ".join(map(str, schema["enum"]))
    kinds = schema.get("type")
    named = " | ".join(map(str, kinds)) if isinstance(kinds, list) else str(kinds or "any")
    items = schema.get("items")
    return f"list of {_type(items)}" if named == "array" and isinstance(items, dict) else named
