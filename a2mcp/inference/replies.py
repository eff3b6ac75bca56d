"""What the agent tools answer: the words for a model, and the same as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.inference.ledger import Spent
from a2mcp.inference.transcript import AgentFacts, Entry, Outcome, Session, State
from a2mcp.tools.output import clip_middle
from a2mcp.tools.result import Result, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2mcp.types import JsonObject

LONGEST: Final = 48 * 1024
"""Bytes of an answer; the transcript has all of it."""


def ended(session: Session) -> Result:
    """Answer whoever began the turn: with what it came to."""
    return _said(session, is_error=session.outcome is not Outcome.DONE)


def standing(session: Session) -> Result:
    """Answer whoever waited for the session: how it stands. That it went wrong is no error of the waiting."""
    if session.state is State.RUNNING:
        said = f"Session {session.id} is still running. Wait on with agent_wait, or look with agent_read."
        return text(f"{said}\n{_foot(session)}", structured=facts(session))
    return _said(session, is_error=False)


def cancelled(session: Session) -> Result:
    """Answer whoever cancelled the turn, which may have ended by itself just before."""
    return text(f"The turn has ended.\n{_foot(session)}", structured=facts(session))


def nothing_to_cancel(session: Session) -> Result:
    """Answer whoever cancels what does not run."""
    return text(f"Nothing runs in session {session.id}.\n{_foot(session)}", structured=facts(session))


def answered(session: Session, answer: str) -> Result:
    """Answer whoever asked a question."""
    data = {**facts(session), "answer": answer}
    return text(f"{clip_middle(answer, LONGEST)}\n{_foot(session)}", structured=data)


def unanswered(session: Session) -> Result:
    """Answer whoever asked a question that the agent did not answer."""
    said = f"The agent did not answer the question. Its last turn ended so: {clip_middle(session.answer, LONGEST)}"
    return text(f"{said}\n{_foot(session)}", is_error=True, structured=facts(session))


def passed_on(question: str) -> Result:
    """Answer the agent: whoever asked has its answer."""
    return text(f"The answer to {question} was passed on.")


def no_question(question: str) -> Result:
    """Answer an agent that answers what nobody asked it."""
    return text(
        f"No question '{question[:40]}' is open in this session. It is in the words of the question.", is_error=True
    )


def listed(sessions: Sequence[Session], more: str | None) -> Result:
    """Answer with a page of sessions."""
    lines = [
        f"{session.id}  {session.state if session.state is State.RUNNING else session.outcome or 'new'}  "
        f"{session.updated_at}  {session.title}"
        for session in sessions
    ]
    if more is not None:
        lines.append(f"[more: call again with cursor {more}]")
    data: JsonObject = {"sessions": [facts(session) for session in sessions]}
    return text("\n".join(lines) or "There are no sessions.", structured=data | ({"nextCursor": more} if more else {}))


def window(session: Session, entries: Sequence[Entry], limit_bytes: int) -> Result:
    """Answer with a window of a transcript: as many entries as fit, and where to go on."""
    lines: list[str] = []
    shown: list[Entry] = []
    room = limit_bytes
    for entry in entries:
        line = clip_middle(_entry_line(entry), limit_bytes // 2)
        room -= len(line.encode("utf-8", "replace"))
        if room < 0 and shown:
            break
        lines.append(line)
        shown.append(entry)
    last = shown[-1].seq if shown else session.entries
    onward = f"more with after={last}" if last < session.entries else "this is the end"
    lines.append(f"[{session.id}: entries up to {last} of {session.entries}; {onward}; {session.state}]")
    data = {"session": facts(session), "entries": msgspec.to_builtins(shown), "next": last}
    return text("\n".join(lines), structured=data)


def status(facts: AgentFacts) -> Result:
    """Answer how the agent is."""
    today = facts.today
    said = f"Model: {facts.model or 'none'}. {facts.running} sessions are running. Today: {today.requests} requests, "
    said += f"{today.input_tokens} tokens in, {today.output_tokens} out."
    if facts.refusal:
        said += f"\nNo turn can begin now: {facts.refusal}"
    plain: JsonObject = msgspec.to_builtins(facts)
    return text(said, structured={**plain, "today": _spent(today), "total": _spent(facts.total)})


def facts(session: Session) -> JsonObject:
    """The facts of a session as data."""
    found: JsonObject = msgspec.to_builtins(session)
    for inner in ("unread", "woken"):
        del found[inner]
    return {"session": found.pop("id"), **found, "spent": _spent(session.spent), "turn": _spent(session.turn)}


def _spent(spent: Spent) -> JsonObject:
    return {"requests": spent.requests, "inputTokens": spent.input_tokens, "outputTokens": spent.output_tokens}


def _said(session: Session, *, is_error: bool) -> Result:
    answer = clip_middle(session.answer or "Nothing was said in this session yet.", LONGEST)
    return text(f"{answer}\n{_foot(session)}", is_error=is_error, structured=facts(session))


def _foot(session: Session) -> str:
    stands = session.state if session.state is State.RUNNING else session.outcome or "new"
    spent = session.spent
    return f"[session {session.id}: {stands}; {spent.requests} requests, {spent.tokens} tokens so far]"


def _entry_line(entry: Entry) -> str:
    by = f" {entry.by}" if entry.by else ""
    wrong = " (error)" if entry.is_error else ""
    return f"{entry.seq} {entry.kind}{by}{wrong}: {entry.text}"
