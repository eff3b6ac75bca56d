"""``a2mcp approve``: let a waiting call go on, or its tool from now on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from a2mcp.cli import show

if TYPE_CHECKING:
    from a2mcp.http.facts import Answered

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Span(click.ParamType[float]):
    """A length of time such as ``90s``, ``15m``, ``1h`` or ``7d``, as seconds."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        match = re.fullmatch(r"([0-9]{1,6})([smhd])", str(value).strip())
        if match is None or not int(match[1]):
            self.fail(f"'{value}' is no length of time; write 90s, 15m, 1h or 7d.", param, ctx)
        return float(int(match[1]) * _UNITS[match[2]])


@click.command()
@click.argument("call", nargs=-1, required=True, metavar="ID...")
@click.option("--session", is_flag=True, help="Ask no more about this tool in the call's session.")
@click.option("--always", is_flag=True, help="Ask no more about this tool, whoever calls it.")
@click.option("--for", "for_s", type=Span(), help="Only for so long: 90s, 15m, 1h, 7d.")
def approve(call: tuple[str, ...], *, session: bool, always: bool, for_s: float | None) -> None:
    """Let waiting calls go on. `a2mcp approvals` has their IDs.

    With --session or --always the tool is not asked about any more; `a2mcp approvals --granted` lists what is allowed
    so, and `--revoke` takes it back.
    """
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client
    from a2mcp.policy.grants import Scope, Word  # noqa: PLC0415

    if session and always:
        raise click.UsageError("--session is for one session and --always for everybody: choose one.")
    if for_s is not None and not (session or always):
        raise click.UsageError("--for says how long --session or --always holds.")
    scope = Scope.SESSION if session else Scope.ALWAYS if always else Scope.ONCE
    client = OperatorClient(show.current_home())
    for one in call:
        answered = client.answer(one, Word(approve=True, scope=scope, for_s=for_s))
        click.echo(f"approved {one}{_granted(answered)}")


def _granted(answered: Answered) -> str:
    grant = answered.grant
    if grant is None:
        return ""
    whom = "for everybody" if grant.session_id is None else "in its session"
    until = f" until {grant.until}" if grant.until else ""
    also = f"; {answered.also} more went on" if answered.also else ""
    return f", and {show.visible(grant.tool)} {whom}{until} ({grant.id}){also}"
