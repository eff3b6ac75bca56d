"""What each call is run in: made anew for every call from what the daemon is and what the call's caller said."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from a2mcp.protocol.telling import CallTeller
from a2mcp.tools.context import SILENT, AgentsPort, Context, JobsPort, Limits, XferPort

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.clock import Clock
    from a2mcp.config.schema import Settings
    from a2mcp.tools.call import Call

    ContextFor = Callable[[Call], Context]


def limits_of(settings: Settings) -> Limits:
    """The limits that tools keep to."""
    limits = settings.limits
    return Limits(
        output_bytes=limits.output_bytes,
        job_bytes=limits.job_bytes,
        jobs=limits.jobs,
        kept_jobs=limits.kept_jobs,
        kept_bytes=limits.kept_bytes,
    )


def cwd_of(settings: Settings) -> Path:
    """Where relative paths start."""
    return settings.cwd or Path(os.getcwd())  # noqa: PTH109  # Path.cwd() imports more at every start.


def contexts(  # noqa: PLR0913, PLR0917 - one argument for each thing that a tool can reach
    settings: Settings, home: Path, clock: Clock, port: JobsPort, xfer_port: XferPort, agents_port: AgentsPort
) -> ContextFor:
    """Make what builds the context of each call."""
    limits = limits_of(settings)
    cwd = cwd_of(settings)

    def context_for(call: Call) -> Context:
        caller = call.exchange.caller
        return Context(
            ticket=call,
            cwd=cwd,
            home=home,
            limits=limits,
            jobs=port,
            clock=clock,
            xfer=xfer_port,
            agents=agents_port,
            cancelled=call.has_ended,
            tell=CallTeller(call.exchange, call.tool) if call.exchange.dialect.streams else SILENT,
            answers=caller.answers,
            capabilities=caller.capabilities,
            state=caller.state,
        )

    return context_for
