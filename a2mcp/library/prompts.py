"""The product's own prompt: how an agent uses another machine's tools, with the facts of this machine filled in.

Owns the words. No secret is among the facts: a prompt ends up in transcripts.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.errors import InvalidParams
from a2mcp.library.spec import PromptArgument, PromptMessage, PromptResult, PromptSpec
from a2mcp.policy.approval import ApprovalSettings, Rule, decide
from a2mcp.tools.result import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2mcp.library.spec import ResourceSpec, TemplateSpec
    from a2mcp.tools.context import Context
    from a2mcp.tools.result import ResourceContents
    from a2mcp.tools.spec import ToolSpec

REMOTE_HANDS: Final = "remote-hands"
SERVER: Final = "a2mcp"
"""What most clients' settings call us."""
_SHELL: Final = "bash"
_DETAILS: Final = ("short", "full")

_SPEC: Final = PromptSpec(
    name=REMOTE_HANDS,
    title="Use another machine's tools",
    description="What an agent should know before it calls these tools: whose machine it is, and what it can do there.",
    arguments=(
        PromptArgument(name="server", description="What your settings call this server; default: a2mcp."),
        PromptArgument(name="detail", description="short, or full (the default): also what each tool is for."),
    ),
)


_WORDS: Final = """\
Through the MCP server "{server}" you have hands on another machine, the host. It is not the machine you run on.

- Host: {host}, {system}. Commands run in {shell}; relative paths start in {cwd}; ~ is {home}.
- Tools: {tools}. What they do is real and happens there: the host's files are read and changed. A path of your own \
machine means nothing to them.
- A tool here may take other arguments than one of that name that you know. Go by its schema in tools/list.
- No model works for you there. You get what the command or the file says; what follows from it, you work out.
- Every round trip costs time. Put into one command what one command can do.
- Set a time limit on each call. A command that takes long comes back as a job; go on with the tool jobs.
- Each call is recorded on the host.
"""
_WAITING: Final = "- These wait until somebody on the host allows the call, which may take long: {tools}.\n"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the prompt says of this host."""

    tools: Callable[[], Sequence[ToolSpec]]
    approval: ApprovalSettings


class Prompts:
    """The shelf of this daemon's own prompt."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def resources(self) -> Sequence[ResourceSpec]:
        """None."""
        return ()

    def templates(self) -> Sequence[TemplateSpec]:
        """None."""
        return ()

    def read(self, uri: str, context: Context) -> tuple[ResourceContents, ...] | None:  # noqa: ARG002
        """Nothing is here."""
        return None

    def prompts(self) -> Sequence[PromptSpec]:
        """The one."""
        return (_SPEC,)

    def prompt(self, name: str, arguments: dict[str, str], context: Context) -> PromptResult:  # noqa: ARG002
        """Fill it in."""
        detail = arguments.get("detail") or _DETAILS[1]
        if detail not in _DETAILS:
            raise InvalidParams(f"invalid params: 'detail' must be {' or '.join(_DETAILS)}")
        server = arguments.get("server") or SERVER
        said = _said(server[:80], self._facts, context, full=detail == _DETAILS[1])
        return PromptResult(description=_SPEC.title, messages=(PromptMessage("user", Text(said)),))

    def complete(self, name: str, argument: str, value: str) -> Sequence[str]:  # noqa: ARG002
        """Propose what begins like that."""
        known = {"server": (SERVER, os.uname().nodename), "detail": _DETAILS}.get(argument, ())
        return [word for word in known if word and word.startswith(value)]

    def attach(self, announce: Callable[[str], None]) -> None:
        """The list never changes."""


def _said(server: str, facts: Facts, context: Context, *, full: bool) -> str:
    specs, machine = facts.tools(), os.uname()
    waiting = [
        spec.name
        for spec in specs
        if decide(facts.approval, spec.name, spec.tier, past_mode=spec.past_mode) is Rule.PROMPT
    ]
    said = _WORDS.format(
        server=server,
        host=machine.nodename or "unnamed",
        system=f"{machine.sysname} {machine.release} ({machine.machine})",
        shell=_SHELL,
        cwd=context.cwd,
        home=os.path.expanduser("~"),  # noqa: PTH111  # Answers "~" where there is none; Path.home raises.
        tools=", ".join(spec.name for spec in specs) or "none at the moment",
    )
    if waiting:
        said += _WAITING.format(tools=", ".join(waiting))
    if full and specs:
        said += "\nWhat each tool is for:\n\n" + "".join(f"- {spec.name}: {spec.title.lower()}\n" for spec in specs)
    return said
