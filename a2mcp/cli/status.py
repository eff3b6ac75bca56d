"""``a2mcp status``: how the daemon is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from a2mcp.cli import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2mcp.http.ports import Status


@click.command()
@show.json_option
def status(*, as_json: bool) -> None:
    """Show the address and how the daemon is doing."""
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    facts = OperatorClient(show.current_home()).status()
    if as_json:
        show.as_document(facts)
    else:
        click.echo(describe(facts))


def _tunnel(facts: Status) -> str:
    tunnel = facts.tunnel
    lost = f": {show.visible(tunnel.error)}" if tunnel.error else ""
    return tunnel.url or f"{tunnel.state}{lost}"


def _stopping(facts: Status) -> Iterator[str]:
    if facts.stopping:
        yield "stopping           takes no more calls, and lets those in flight finish"


def _last_record(facts: Status) -> Iterator[str]:
    if facts.audit.last:
        yield f"last record        {facts.audit.last}, hash {facts.audit.hash}"


def _orphans(facts: Status) -> Iterator[str]:
    if facts.orphans:
        yield f"orphans            {facts.orphans}, of a daemon that was killed  (see `a2mcp jobs`)"


def _agent(facts: Status) -> Iterator[str]:
    agent, today = facts.agent, facts.agent.today
    if agent.model is None:
        return
    spent = f"today {today.requests} requests, {today.tokens} tokens"
    yield f"agent              {agent.running} running, {agent.turns} turns ended; {spent}"
    if agent.refusal is not None:
        yield f"agent refuses      {show.visible(agent.refusal)}"


def _downloading(facts: Status) -> Iterator[str]:
    if (one := facts.downloading) is not None:
        of = "" if one.total is None else f" of {one.total}"
        yield f"downloading        {one.name}: {one.bytes}{of} bytes"


def _models(facts: Status) -> str:
    switch = "allowed" if facts.host_llm.enabled else "denied, tripwire only" if facts.host_llm.degraded else "denied"
    refused = f", {facts.host_llm.denied} refused" if facts.host_llm.denied else ""
    return f"{show.visible(facts.host_llm.model or 'none')} ({switch}{refused})"


def describe(facts: Status) -> str:
    """Write the facts for a person."""
    approve = "  (see `a2mcp approvals`)" if facts.approvals_waiting else ""
    return "\n".join(
        (
            f"a2mcp {facts.version} on {facts.bridge_url} (token {facts.token_prefix})",
            *_stopping(facts),
            f"standard dialect   {facts.url}",
            f"running            pid {facts.pid}, for {show.duration(facts.uptime_s)}, since {facts.started_at}",
            f"sessions           {facts.sessions}",
            f"calls in flight    {facts.calls_in_flight}",
            f"approvals waiting  {facts.approvals_waiting}{approve}",
            f"jobs running       {facts.jobs_running}",
            *_orphans(facts),
            f"audit              {facts.audit.written} written, {facts.audit.failures} failures",
            *_last_record(facts),
            f"tunnel             {_tunnel(facts)}",
            f"host's model       {_models(facts)}",
            *_agent(facts),
            *_downloading(facts),
        )
    )
