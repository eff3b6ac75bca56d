"""The jobs actor: the thread in which running commands are looked after.

A thin shell: ``a2mcp.host.runs`` owns the commands and the loop, this turns messages into its calls. The commands
outlive the actor: a replacement is given the same ``Runs`` and goes on where the other ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar, assert_never

from a2mcp.audit.record import ABORTED, CANCELLED
from a2mcp.errors import Internal, ToolError
from a2mcp.host.descendants import here
from a2mcp.host.jobbook import JobBook
from a2mcp.host.joblog import Ending, JobLog, Page, Record, Stream
from a2mcp.host.jobroom import JobRoom
from a2mcp.host.run import Watcher
from a2mcp.host.runs import Counts, Runs
from a2mcp.tools import jobs as tool
from a2mcp.tools.commandtext import command_result
from a2mcp.tools.context import SILENT
from a2mcp.tools.result import Result, text
from a2mcp.types import CallId
from actors.kit import Actor
from actors.ref import Ask, Message, Ref, WakeableMailbox

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from a2mcp.clock import Clock
    from a2mcp.host.process import Child
    from a2mcp.host.run import Progress, Report
    from a2mcp.tools.context import Limits, Teller, Ticket
    from a2mcp.tools.jobs import JobsParams
    from a2mcp.types import JobId


T = TypeVar("T")

_ENDED: Final = {Ending.CANCELLED: CANCELLED, Ending.SHUTDOWN: ABORTED}
"""What the record says of a call whose command did not end by itself."""


class Finish(Protocol):
    """Completes a call; may be called more than once for one call."""

    def __call__(self, ticket: Ticket, result: Result, *, ended: str | None = ...) -> None:
        """Complete it; ``ended`` says why it did not end by itself."""
        ...


class Started(Message, frozen=True):
    """Look after a command that a call has started."""

    ticket: Ticket
    child: Child
    tell: Teller = SILENT


class Serve(Message, frozen=True):
    """Answer a call of the ``jobs`` tool."""

    ticket: Ticket
    params: JobsParams
    tell: Teller = SILENT


class Cancel(Message, frozen=True):
    """End the command that this call waits for."""

    call_id: CallId


class StopAll(Message, frozen=True):
    """End every command, and every one that still arrives: TERM, and KILL after the grace."""

    grace_s: float


class GetCounts(Ask[Counts], frozen=True):
    """Ask how many commands there are."""


class GetReport(Ask["Report | ToolError"], frozen=True):
    """Ask how one job stands, with its output."""

    job: JobId


class GetPage(Ask["Page | ToolError"], frozen=True):
    """Ask for a part of a job's output."""

    job: JobId
    stream: Stream
    offset: int
    limit: int


class Stop(Ask["ToolError | None"], frozen=True):
    """End a job because the operator says so."""

    job: JobId


class GetRecords(Ask[tuple[Record, ...]], frozen=True):
    """Ask how every job stands, oldest first."""


JobsMessage = Started | Serve | Cancel | StopAll | GetCounts | GetReport | GetPage | Stop | GetRecords


def runs_for(home: Path, clock: Clock, limits: Limits, saved: Callable[[Record], None] = lambda _record: None) -> Runs:
    """Make what the actor looks after: once per daemon, whatever happens to the actor.

    Args:
        home: the folder that has the folder of the jobs.
        clock: for time limits.
        limits: of commands and their output.
        saved: is told how a job stands whenever that is written down.
    """
    log = JobLog(home / "jobs", keep=limits.kept_jobs, keep_bytes=limits.kept_bytes, saved=saved)
    room = JobRoom(running=limits.jobs, job_bytes=limits.job_bytes, kept_bytes=limits.kept_bytes)
    return Runs(clock=clock, log=log, room=room, output_bytes=limits.output_bytes, descendants=here())


class Jobs(Actor[JobsMessage]):
    """Sleeps in the loop of the running commands; its mailbox is one of the things that wake it.

    Args:
        mailbox: made by ``mailbox_for``.
        runs: made by ``runs_for``.
        finish: completes a call.
    """

    MAILBOX: ClassVar[int] = 65_536

    def __init__(self, mailbox: WakeableMailbox, runs: Runs, finish: Finish) -> None:
        super().__init__(mailbox)
        self._wakeable = mailbox
        self._runs = runs
        self._book = JobBook(runs)
        self._finish = finish
        runs.loop.forget(mailbox)
        runs.loop.on_readable(mailbox)

    @classmethod
    def mailbox_for(cls, name: str) -> WakeableMailbox:
        """Make the mailbox that the actor reads."""
        return WakeableMailbox(name, cls.MAILBOX)

    def take(self) -> Sequence[Any]:
        """Look after the commands until a message waits or something has been done."""
        self._runs.loop.turn(None if self._wakeable.empty() else 0)
        return self._wakeable.drain()

    def receive(self, message: JobsMessage) -> object:  # noqa: C901  # One arm a message.
        """Turn a message into a call of ``runs``."""
        match message:
            case Started():
                self._completing(message.ticket, lambda: self._start(message))
            case Serve():
                self._completing(message.ticket, lambda: self._serve(message))
            case Cancel():
                self._runs.cancel(message.call_id)
            case StopAll():
                self._runs.stop_all(message.grace_s)
            case GetCounts():
                return self._runs.counts()
            case GetReport(job=job):
                return _or_error(lambda: self._book.report(job))
            case GetPage(job=job, stream=stream, offset=offset, limit=limit):
                return _or_error(lambda: self._page(job, stream, offset, limit))
            case Stop(job=job):
                return _or_error(lambda: self._book.stop(job, Watcher(CallId(""), lambda _report: None)))
            case GetRecords():
                return tuple(self._book.records())
            case _:
                assert_never(message)
        return None

    def on_stop(self) -> None:
        """Kill what ``StopAll`` did not end."""
        self._runs.close()

    def _start(self, message: Started) -> None:
        def answer(report: Report) -> None:
            result = command_result(report, output_bytes=self._runs.output_bytes)
            ended = _ENDED.get(report.record.ending) if report.record.ending is not None else None
            if ended is None:
                self._finish(message.ticket, result)
            else:
                self._finish(message.ticket, result, ended=ended)

        watcher = Watcher(message.ticket.call_id, answer, owner=True, progress=_progress_of(message.tell))
        self._runs.start(message.child, watcher)

    def _serve(self, message: Serve) -> None:
        ticket = message.ticket

        def finish(result: Result) -> None:
            self._finish(ticket, result)

        tool.answer(
            message.params,
            self._book,
            ticket.call_id,
            finish,
            output_bytes=self._runs.output_bytes,
            progress=_progress_of(message.tell),
        )

    def _page(self, job: JobId, stream: Stream, offset: int, limit: int) -> Page:
        self._book.record(job)  # A job that is not there has no empty output.
        return self._book.page(job, stream, offset, limit)

    def _completing(self, ticket: Ticket, step: Callable[[], None]) -> None:
        """Do a step that will complete a call; when it breaks, complete the call here."""
        try:
            step()
        except ToolError as error:
            self._finish(ticket, text(str(error), is_error=True))
        except BaseException:
            self._finish(ticket, text(str(Internal()), is_error=True))
            raise


def _or_error(ask: Callable[[], T]) -> T | ToolError:
    """Answer with what went wrong, rather than have it logged as ours."""
    try:
        return ask()
    except ToolError as error:
        return error


def _progress_of(tell: Teller) -> Progress | None:
    """How the progress of a command is told, or None where nobody wants to know."""
    if not tell.wants_progress:
        return None
    return lambda written, line: tell.progress(written, None, line)


def counts(jobs: Ref[JobsMessage]) -> Counts:
    """Ask how many commands there are."""
    return jobs.ask(GetCounts(), timeout=5)


def records(jobs: Ref[JobsMessage]) -> tuple[Record, ...]:
    """Ask how every job stands, oldest first."""
    return jobs.ask(GetRecords(), timeout=5)


def report(jobs: Ref[JobsMessage], job: JobId) -> Report:
    """Ask how one job stands, with its output.

    Raises:
        ToolError: there is no such job.
    """
    return _or_raise(jobs.ask(GetReport(job), timeout=5))


def page(jobs: Ref[JobsMessage], job: JobId, stream: Stream, offset: int, limit: int) -> Page:
    """Ask for a part of a job's output; a negative offset counts from its end.

    Raises:
        ToolError: there is no such job.
    """
    return _or_raise(jobs.ask(GetPage(job, stream, offset, limit), timeout=5))


def stop(jobs: Ref[JobsMessage], job: JobId) -> None:
    """Begin to end a job: TERM first, KILL after a grace.

    Raises:
        ToolError: there is no such job.
    """
    _or_raise(jobs.ask(Stop(job), timeout=5))


def _or_raise(answer: T | ToolError) -> T:
    if isinstance(answer, ToolError):
        raise answer
    return answer


def cancel(jobs: Ref[JobsMessage], call_id: CallId) -> None:
    """Have the command ended that this call waits for."""
    jobs.insist(Cancel(call_id))


def stop_all(jobs: Ref[JobsMessage], *, grace_s: float) -> None:
    """Have every command ended, and every one that still arrives."""
    jobs.insist(StopAll(grace_s))
