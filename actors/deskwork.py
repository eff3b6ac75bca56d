"""What the operator may see and stop while it happens: waiting calls, grants, events, calls, sessions, jobs, the log.

The half of the operator's port that ``operator.py`` builds on. Waits for actors, on the operator channel's own thread.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, cast

from a2mcp.clock import iso
from a2mcp.errors import A2mcpError
from a2mcp.host.paths import written
from a2mcp.http.facts import (
    Answered,
    AuditCall,
    CallFacts,
    EventsAsked,
    Finding,
    JobOutput,
    Search,
    SessionFacts,
    ShareFacts,
    WaitingApproval,
)
from a2mcp.policy.grants import Grant, Word
from a2mcp.types import JobId, SessionId
from a2mcp.xfer.owner import ROUTE
from actors import audit, events, executor, gate, jobs, sessions, xfer

if TYPE_CHECKING:
    from a2mcp.audit.query import Call as Logged
    from a2mcp.clock import Clock
    from a2mcp.config.paths import Home
    from a2mcp.host.joblog import Stream
    from a2mcp.observe.event import Event
    from actors.system import System

MOST_EVENTS = 10_000
"""In one answer."""
MOST_OUTPUT = 64 * 1024
"""Bytes of a command's output in one answer."""


class NotWaiting(A2mcpError):
    """A call that the operator answers and that does not wait."""

    status = 404


class TooLate(A2mcpError):
    """A call that somebody else has answered, or that ended, before this answer."""

    status = 409


class Deskwork:
    """The operator's view of what happens.

    Args:
        system: the actors.
        home: where the log is.
        origin: our own address as this machine reaches it.
        clock: for how long things wait.
    """

    def __init__(self, system: System, home: Home, origin: str, clock: Clock) -> None:
        self._system = system
        self._home = home
        self._origin = origin
        self._clock = clock

    # --- approvals ------------------------------------------------------------------------------------------------

    def approvals(self) -> tuple[WaitingApproval, ...]:
        """List the calls that wait for the operator, oldest first."""
        now = self._clock.now()
        return tuple(
            WaitingApproval(
                id=request.id,
                call_id=request.call_id,
                tool=request.tool,
                args=request.args,
                session_id=request.session_id,
                waiting_s=round((now - request.since).total_seconds(), 3),
                client=request.client,
            )
            for request in gate.waiting(self._system.refs.gate)
        )

    def answer(self, approval_id: str, word: Word) -> Answered:
        """Let a waiting call go on, or end it with the reason."""
        verdict = gate.answer(self._system.refs.gate, approval_id, word)
        if verdict.earlier is not None:
            raise TooLate(f"The call '{approval_id}' was {verdict.earlier} before you answered.")
        if not verdict.counted:
            raise NotWaiting(f"No call waits for approval under '{approval_id[:80]}'.")
        grant = verdict.grant
        more: dict[str, Any] = {} if grant is None else {"grant": grant.id, "scope": word.scope, "for_s": word.for_s}
        self.record("approve" if word.approve else "deny", id=approval_id, **more)
        return Answered(id=approval_id, approved=word.approve, grant=grant, also=verdict.also)

    def grants(self) -> tuple[Grant, ...]:
        """List what is allowed beyond one call."""
        return gate.grants(self._system.refs.gate)

    def revoke(self, grant_id: str) -> Grant | None:
        """Have a tool asked about again; None when there is no such grant."""
        revoked = gate.revoke(self._system.refs.gate, grant_id)
        if revoked is not None:
            self.record("revoke", id=grant_id, tool=revoked.tool)
        return revoked

    # --- what happens ---------------------------------------------------------------------------------------------

    def events(self, asked: EventsAsked) -> tuple[Event, ...]:
        """Return kept events: those after a number, or the last ones."""
        count = max(0, min(asked.limit, MOST_EVENTS))
        if asked.after is None:
            return events.last(self._system.refs.events, count, asked.wanted)
        return events.since(self._system.refs.events, max(0, asked.after), count, asked.wanted)

    def calls(self) -> tuple[CallFacts, ...]:
        """List the calls in flight, oldest first."""
        waiting = {request.call_id for request in gate.waiting(self._system.refs.gate)}
        return tuple(
            CallFacts(
                call_id=call.call_id,
                tool=call.tool,
                args=call.summary.args,
                client=call.exchange.caller.client,
                session_id=call.session_id,
                elapsed_s=round(age_s, 3),
                waiting=call.call_id in waiting,
            )
            for call, age_s in self._system.front.in_flight()
            if not call.has_ended()
        )

    def cancel_call(self, call_id: str) -> bool:
        """End a call in flight, and what runs for it; False when there is none."""
        for call, _ in self._system.front.in_flight():
            if call.call_id == call_id and not call.has_ended():
                executor.cancel(self._system.refs.executor, call, executor.STOPPED)
                self.record("cancel", id=call_id)
                return True
        return False

    def sessions(self) -> tuple[SessionFacts, ...]:
        """List the sessions, the one unseen for longest first."""
        busy = [call.session_id for call, _ in self._system.front.in_flight()]
        return tuple(
            SessionFacts(id=session_id, idle_s=round(idle_s, 3), calls=busy.count(session_id))
            for session_id, idle_s in sessions.alive(self._system.refs.sessions)
        )

    def end_session(self, session_id: str) -> bool:
        """End a session; its calls go on. False when there is none."""
        ended = sessions.close(self._system.refs.sessions, SessionId(session_id))
        if ended:
            self.record("end session", id=session_id)
        return ended

    # --- commands and the log -------------------------------------------------------------------------------------

    def stop_job(self, job_id: str) -> None:
        """Begin to end a command."""
        jobs.stop(self._system.refs.jobs, JobId(job_id))
        self.record("stop job", id=job_id)

    def job_output(self, job_id: str, stream: str, offset: int) -> JobOutput:
        """Read what a command has written; a negative offset counts from the end."""
        page = jobs.page(self._system.refs.jobs, JobId(job_id), cast("Stream", stream), offset, MOST_OUTPUT)
        return JobOutput(
            id=job_id,
            stream=stream,
            text=page.data.decode("utf-8", "replace"),
            offset=page.offset,
            next=page.offset + len(page.data),
            size=page.size,
        )

    # --- the share, and what is wrong -----------------------------------------------------------------------------

    def share(self) -> ShareFacts | None:
        """Tell what is shared."""
        standing = self._system.stand.standing()
        if standing is None:
            return None
        opened, public = standing.opened, self._system.tunnel.url
        return ShareFacts(
            path=written(standing.share.path),
            is_file=standing.share.is_file,
            url=self._origin + ROUTE,
            public_url=None if public is None else public + ROUTE,
            server="embedded" if standing.server is None else "dufs",
            started_at=iso(opened.started),
            expires_at=iso(opened.expires),
            left_s=round(max(0.0, opened.deadline - self._clock.monotonic()), 3),
            transfers=self._system.stand.transfers.running(),
        )

    def stop_transfer(self, transfer: str) -> bool:
        """End what is being moved; False when it is not under way."""
        return self._system.stand.transfers.stop(transfer)

    def stop_share(self) -> bool:
        """End the share; False when there is none."""
        stopped = xfer.stop(self._system.refs.xfer)
        audit.settle(self._system.refs.audit)
        return stopped

    def doctor(self) -> tuple[Finding, ...]:
        """Look for what is wrong, as ``a2mcp doctor`` does from outside."""
        from a2mcp.cli import checks  # noqa: PLC0415 - for whoever asks

        return tuple(
            Finding(name=each.name, verdict=each.verdict.value, fact=each.fact, mend=each.mend)
            for each in checks.examine(self._home)
        )

    def search(self, wanted: Search) -> tuple[AuditCall, ...]:
        """Look into the audit log, the newest last."""
        from a2mcp.audit import query  # noqa: PLC0415 - for whoever searches only

        chosen = query.Filter(tool=wanted.tool, session=wanted.session)
        found = (_logged(call) for call in query.calls(self._home.audit, chosen))
        return tuple(deque((call for call in found if _is_wanted(call, wanted)), maxlen=max(0, wanted.last)))

    def record(self, action: str, **more: Any) -> None:
        """Leave a trace of what the operator did, before that is answered; of a rotation never the token."""
        facts = {name: value for name, value in more.items() if value is not None}
        audit.record(self._system.refs.audit, "operator", None, {"action": action, **facts})
        audit.settle(self._system.refs.audit)


def _logged(call: Logged) -> AuditCall:
    record = call.record
    return AuditCall(
        id=record.id,
        session=record.sid,
        client=record.client or None,
        tool=record.tool,
        started=call.start.ts if call.start else None,
        ended=call.done.ts if call.done else None,
        seconds=call.seconds,
        outcome=_outcome(call),
        args=record.args,
    )


def _outcome(call: Logged) -> str:
    done = call.done
    if done is None:
        return "unfinished"
    if done.ended:
        return done.ended
    if not isinstance(done.is_error, bool):
        return "-"
    return "error" if done.is_error else "ok"


def _is_wanted(call: AuditCall, wanted: Search) -> bool:
    if wanted.outcome not in (None, call.outcome):
        return False
    if wanted.text is None:
        return True
    said = " ".join((call.tool, call.client or "", call.session or "", bytes(call.args).decode("utf-8", "replace")))
    return wanted.text.casefold() in said.casefold()
