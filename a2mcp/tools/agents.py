"""The tools ``agent_…``: the host's own agent as callers reach it. Owns their words and parameters.

Each only checks and passes the call on to whoever looks after the sessions. Offered while a model can be asked.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from a2mcp.errors import ToolError
from a2mcp.tools.registry import LocalHost
from a2mcp.tools.schema import spec_for
from a2mcp.tools.spec import Lane, Tier, Tool

if TYPE_CHECKING:
    from a2mcp.tools.context import Context
    from a2mcp.tools.result import Outcome
    from a2mcp.tools.spec import AnyTool

DEFAULT_WAIT_S: Final = 300
_WAIT: Final = "Seconds to wait for the end; 0 hands the session back at once. It goes on in any case."
_SESSION: Final = "The session's id; 'main' is the one that is told what happens on the host."

Wait = Annotated[int, Meta(ge=0, le=3600, description=_WAIT)]
Session = Annotated[str, Meta(min_length=1, max_length=64, description=_SESSION)]
Prompt = Annotated[str, Meta(min_length=1, description="What to do, in full: the agent sees nothing else of yours.")]


class RunParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A prompt for a new session."""

    prompt: Prompt
    model: Annotated[str | None, Meta(description="As provider/id; default: the model that the operator chose.")] = None
    wait: Wait = DEFAULT_WAIT_S


class ContinueParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A prompt for a session that is there."""

    session: Session
    prompt: Prompt
    wait: Wait = DEFAULT_WAIT_S


class WaitParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which session to wait for."""

    session: Session
    wait: Wait = DEFAULT_WAIT_S


class ReadParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which part of which transcript."""

    session: Session
    after: Annotated[
        int, Meta(ge=-1_000_000, le=2**53, description="Entries behind this number; negative: so many from the end.")
    ] = -20
    limit: Annotated[int, Meta(ge=1, le=500, description="Most entries.")] = 50


class ListParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which sessions."""

    query: Annotated[str | None, Meta(description="Only those with this in their title, in any case.")] = None
    running: Annotated[bool, Meta(description="Only those that are running.")] = False
    limit: Annotated[int, Meta(ge=1, le=200, description="Most sessions.")] = 20
    cursor: Annotated[str | None, Meta(description="Where the page before ended.")] = None


class CancelParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which session's turn."""

    session: Session


class AskParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A question for a session."""

    session: Session
    question: Annotated[str, Meta(min_length=1, description="What you need to know.")]
    wait: Wait = DEFAULT_WAIT_S


class AnswerParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The answer to a question."""

    id: Annotated[str, Meta(min_length=1, description="The id of the question, from its words.")]
    text: Annotated[str, Meta(description="The answer, for whoever asked.")]


class StatusParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing."""


AgentParams = (
    RunParams
    | ContinueParams
    | WaitParams
    | ReadParams
    | ListParams
    | CancelParams
    | AskParams
    | AnswerParams
    | StatusParams
)


def run(params: AgentParams, context: Context) -> Outcome:
    """Pass the call on."""
    if context.agents is None:
        raise ToolError("There is no agent here.")
    return context.agents.serve(context.ticket, params, context.tell)


# --- the catalogue -----------------------------------------------------------------------------------------------


class AgentHost(LocalHost):
    """Offers the tools while there is a model to ask."""

    name = "agents"

    def offer(self, wanted: bool) -> None:  # noqa: FBT001 - the one thing that it is told
        """Offer the tools, or do not; whoever listens is told when that is a change."""
        with self._changing:
            if wanted != bool(self.list()):
                self._replace({tool.spec.name: tool for tool in every_tool()} if wanted else {})


def _tool(name: str, title: str, words: str, params: type[msgspec.Struct], tier: Tier) -> AnyTool:
    spec = spec_for(params, name=name, title=title, description=words, tier=tier, lane=Lane.INLINE, open_world=True)
    return Tool(spec=spec, params=params, run=run)


_RUN: Final = """\
Give a task to the agent of this machine: a model of its own that works with the tools you see here. Starts a session \
and answers with what the agent says at the end. What takes longer than `wait` goes on; the answer then names the \
session for agent_wait.\
"""
_CONTINUE: Final = "Say something more to a session of the agent. While a turn runs, it waits for the next one."
_WAIT_WORDS: Final = "Wait until a session has come to rest, and see what it said last. Cancels nothing."
_READ: Final = "Read a part of a session's transcript: prompts, what the model said, tools it used, and their results."
_LIST: Final = "List the agent's sessions, the one that was busy last first; also of earlier runs of the daemon."
_CANCEL: Final = "End the running turn of a session, and the tools that run for it. What waits for its next turn stays."
_ASK: Final = """\
Ask a session something that it must answer, also while it works. Waits for that answer, and not for the end of its \
turn.\
"""
_ANSWER: Final = "For the agent itself: answer a question that was put to this session."
_STATUS: Final = "Tell which model the agent has, how many sessions run, and what was spent."

NAMES: Final = tuple(
    f"agent_{name}" for name in ("run", "continue", "wait", "read", "list", "cancel", "ask", "answer", "status")
)
OWN: Final = frozenset({"agent_answer"})
"""What of these an agent is offered itself: one that began others could do so without end."""


@cache
def every_tool() -> tuple[AnyTool, ...]:
    """Make the tools. PERF: their schemas take milliseconds, which a daemon without a model does not spend."""
    return (
        _tool("agent_run", "Give the agent a task", _RUN, RunParams, Tier.EXECUTE),
        _tool("agent_continue", "Go on with a session", _CONTINUE, ContinueParams, Tier.EXECUTE),
        _tool("agent_wait", "Wait for a session", _WAIT_WORDS, WaitParams, Tier.READ),
        _tool("agent_read", "Read a transcript", _READ, ReadParams, Tier.READ),
        _tool("agent_list", "List sessions", _LIST, ListParams, Tier.READ),
        _tool("agent_cancel", "Cancel a turn", _CANCEL, CancelParams, Tier.EXECUTE),
        _tool("agent_ask", "Ask a session", _ASK, AskParams, Tier.EXECUTE),
        _tool("agent_answer", "Answer a question", _ANSWER, AnswerParams, Tier.READ),
        _tool("agent_status", "Show the agent", _STATUS, StatusParams, Tier.READ),
    )
