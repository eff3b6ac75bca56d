"""What ``doctor`` looks at, one function per question. All of them only look.

``places`` has the files, ``serving`` the daemon, ``machine`` what is around it, ``room`` how much of it there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2mcp.cli.checks import machine, places, room, serving
from a2mcp.cli.checks.finding import Finding, Seen, Verdict
from a2mcp.cli.client import OperatorClient
from a2mcp.config import instance
from a2mcp.errors import A2mcpError

if TYPE_CHECKING:
    from a2mcp.cli.checks.finding import Question
    from a2mcp.config.paths import Home

__all__ = ["Finding", "Verdict", "examine"]

QUESTIONS: Final[tuple[Question, ...]] = (
    places.folder,
    places.files,
    places.audit,
    places.chain,
    places.socket,
    serving.daemon,
    serving.port,
    serving.reach,
    serving.exposure,
    serving.orphans,
    room.disk,
    room.open_files,
    room.processes,
    room.sizes,
    machine.clock,
    machine.user,
    machine.stragglers,
    machine.programs,
    machine.agent,
)
"""In the order in which faults follow from one another."""


def examine(home: Home) -> list[Finding]:
    """Ask every question about a home."""
    settings, findings = places.settings(home)
    served = instance.is_served(home)
    status = None
    if served:
        try:
            status = OperatorClient(home).status()
        except A2mcpError as error:
            findings.append(serving.silent(home, error))
    seen = Seen(home=home, settings=settings, served=served, status=status)
    for ask in QUESTIONS:
        findings.extend(ask(seen))
    return findings
