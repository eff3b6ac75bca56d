"""What an agent's session is and what happened in it, as values.

Owns the kinds of entries and the facts of a session. Does not know how they are kept.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from a2mcp.inference.ledger import Spent
from a2mcp.masking import mask
from a2mcp.types import SessionId

MAIN: Final = SessionId("main")
"""The session that is told of what happens on the host. It is made when it is first needed."""
TITLE: Final = 80
"""Characters of a session's title."""


class Kind(enum.StrEnum):
    """What an entry of a transcript is."""

    PROMPT = "prompt"
    """What a caller asked for."""
    NOTICE = "notice"
    """What the host told the agent, for example that a job has ended."""
    QUESTION = "question"
    """What must be answered with ``agent_answer``."""
    SAID = "said"
    """What the model said."""
    CALL = "call"
    """A tool that the model used, with its arguments."""
    RESULT = "result"
    """What the tool answered."""
    END = "end"
    """How a turn ended."""


class State(enum.StrEnum):
    """How a session stands."""

    IDLE = "idle"
    RUNNING = "running"


class Outcome(enum.StrEnum):
    """How a turn ended."""

    DONE = "done"
    FAILED = "failed"
    """The provider, its answers, or the loop around them."""
    REFUSED = "refused"
    """No request was made: inference is denied, or the budget is spent."""
    LIMIT = "limit"
    """It made as many requests as a turn may."""
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    """The daemon stopped or was killed."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One thing that happened in a session."""

    seq: int
    """From 1, without holes."""
    at: str
    kind: Kind
    text: str
    by: str | None = None
    """Of a prompt: the client that asked. Of a call or a result: the tool."""
    id: str | None = None
    """Of a question: what its answer names. Of a call and its result: what pairs them."""
    is_error: bool = False


class Session(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The facts of a session."""

    id: SessionId
    title: str
    """The beginning of its first prompt."""
    client: str | None
    """Who began it."""
    model: str | None
    """The model that was asked for; None: the chosen one, whichever that is at the time."""
    started_at: str
    updated_at: str
    state: State = State.IDLE
    outcome: Outcome | None = None
    """Of the last turn that ended."""
    answer: str = ""
    """What that turn came to: the model's last words, or what went wrong."""
    entries: int = 0
    turns: int = 0
    spent: Spent = Spent()
    turn: Spent = Spent()
    """What the last turn has spent."""
    unread: tuple[str, ...] = ()
    """What the host has told it since its last turn, for the next one to read."""
    woken: int = 0
    """Turns in a row that nobody asked for."""


class AgentFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How the host's own agent is, over all its sessions."""

    model: str | None = None
    """The model it works with; None where it has none."""
    running: int = 0
    """Turns that go on."""
    turns: int = 0
    """Turns that have ended since the start, refused ones included."""
    today: Spent = Spent()
    """What was spent on the budget's day, which is one of UTC."""
    total: Spent = Spent()
    """What was spent since the start."""
    refusal: str | None = None
    """Why no turn can begin now."""


def new_session(session: SessionId, now: str, *, title: str, client: str | None, model: str | None) -> Session:
    """Make the facts of a session in which nothing has happened yet."""
    return Session(id=session, title=title, client=client, model=model, started_at=now, updated_at=now)


def title_of(prompt: str) -> str:
    """Make a title of the beginning of a prompt."""
    line = " ".join(mask(prompt[: 4 * TITLE]).split())
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"
