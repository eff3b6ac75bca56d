"""``a2mcp host-llm``: whether the host may ask models of its own, shown and set by whoever sits here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from a2mcp.cli import show

if TYPE_CHECKING:
    from a2mcp.http.facts import HostLlmFacts


@click.command(name="host-llm")
@click.argument("switch", type=click.Choice(["on", "off"]), required=False)
@show.json_option
def host_llm(switch: str | None, *, as_json: bool) -> None:
    """Show whether the host may ask models, or turn it on or off.

    Callers can do the same with POST /host-llm. Nothing is written: a restart is back at the setting host_llm.
    """
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    client = OperatorClient(show.current_home())
    facts = client.host_llm() if switch is None else client.switch_host_llm(enabled=switch == "on")
    if as_json:
        show.as_document(facts)
    else:
        click.echo(_line(facts))


def _line(facts: HostLlmFacts) -> str:
    switch = "allow" if facts.enabled else "deny (tripwire only)" if facts.degraded else "deny"
    return f"host_llm={switch} denied={facts.denied} model={show.visible(facts.model or 'none')}"
