"""Runs a plan from the handshake to the result: the one way into this package."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Final

from a2mcp.bench.errors import BadPlan
from a2mcp.bench.load import Load
from a2mcp.bench.messages import make
from a2mcp.bench.plan import MAX_CLIENTS, Era
from a2mcp.bench.result import summarize
from a2mcp.bench.session import choose_address, end_session, open_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.bench.load import Progress
    from a2mcp.bench.plan import Plan
    from a2mcp.bench.result import Result

_SPARE_FILES: Final = 64


def _silent(_: Progress) -> None:
    """Report to nobody."""


def run(plan: Plan, progress: Callable[[Progress], None] = _silent) -> Result:
    """Measure.

    Args:
        plan: what to do.
        progress: called about ten times a second, in the measuring thread: it must be quick.

    Raises:
        BadPlan: more clients than this process may open connections.
        HandshakeFailed: the server did not take the opening of a session.
    """
    _allow_connections(plan.clients)
    plan = choose_address(plan)
    legacy = plan.era is Era.LEGACY and plan.session
    session = open_session(plan) if legacy else None
    try:
        templates = [make(plan, step, session) for step in plan.steps]
        tally = Load(plan, templates, progress).run()
    finally:
        if session is not None:
            end_session(plan, session)
    return summarize(plan, [template.label for template in templates], tally, session=session is not None)


def _allow_connections(clients: int) -> None:
    """Raise this process's own limit of open files as far as it is needed and allowed."""
    wanted = clients + _SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if clients > MAX_CLIENTS or allowed < wanted:
        raise BadPlan(f"{clients} clients are too many here (at most {min(MAX_CLIENTS, allowed - _SPARE_FILES)}).")
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
