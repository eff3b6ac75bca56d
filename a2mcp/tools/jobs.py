"""The ``jobs`` tool: commands that outlived their call. Owns its words, and how each action is answered.

``run`` only passes the call on; ``answer`` is called where the running commands live.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta

from a2mcp.errors import BadArgument
from a2mcp.host import terminal
from a2mcp.host.command import DEFAULT_WAIT_S
from a2mcp.host.run import Watcher
from a2mcp.tools.commandtext import command_result, notes, outcome
from a2mcp.tools.output import clip_middle
from a2mcp.tools.result import Result, text
from a2mcp.tools.schema import spec_for
from a2mcp.tools.spec import Tier, Tool
from a2mcp.types import JobId

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.host.jobbook import JobBook
    from a2mcp.host.joblog import Record
    from a2mcp.host.run import Progress, Report
    from a2mcp.tools.context import Context
    from a2mcp.tools.result import Outcome
    from a2mcp.types import CallId

_DESCRIPTION = """\
Look after commands that bash handed back as jobs.

- list: all jobs, also of earlier runs of the daemon.
- output: a page of the output from byte `offset` (negative: from the end); call again with the next offset it names.
- wait: until the job has ended or `timeout` seconds are over.
- stop: end the job and all it started (TERM, then KILL).
- write: send `input` to a job that was started with wait=0 and a stdin; an empty `input` closes it.\
"""

_COMMAND_SHOWN: Final = 100
_SMALLEST_PAGE: Final = 16


class JobsParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to do, and with which job."""

    action: Annotated[Literal["list", "output", "wait", "stop", "write"], Meta(description="What to do.")]
    id: Annotated[str | None, Meta(description="The job; needed by all but list.")] = None
    stream: Annotated[Literal["stdout", "stderr"], Meta(description="For output: which of the two.")] = "stdout"
    offset: Annotated[int, Meta(ge=-(2**53), le=2**53, description="For output: first byte; negative: from end.")] = 0
    limit: (
        Annotated[int, Meta(ge=_SMALLEST_PAGE, le=2**53, description="For output: most bytes; default: about 50 KiB.")]
        | None
    ) = None
    timeout: Annotated[float, Meta(ge=0, le=3600, description="For wait: seconds.")] = DEFAULT_WAIT_S
    input: Annotated[str | None, Meta(description="For write: the text; empty closes standard input.")] = None


def run(params: JobsParams, context: Context) -> Outcome:
    """Check what can be checked here and pass the call on."""
    if params.action != "list" and not params.id:
        raise BadArgument("id", "the id of a job", "nothing", hint="Call jobs with action=list for the ids.")
    if params.action == "write" and params.input is None:
        raise BadArgument("input", "the text to write", "nothing", hint="An empty text closes standard input.")
    return context.jobs.serve(context.ticket, params, context.tell)


def answer(  # noqa: PLR0913 - what a call brings along
    params: JobsParams,
    book: JobBook,
    call_id: CallId,
    finish: Callable[[Result], None],
    *,
    output_bytes: int,
    progress: Progress | None = None,
) -> None:
    """Do what a call asks for and finish it, now or when the job has got there.

    While it waits, ``progress`` is told how far the job is.

    Raises:
        ToolError: it cannot be done.
    """

    def tell(report: Report) -> None:
        result = command_result(report, output_bytes=output_bytes)
        # The command may have failed, but looking at it or stopping it did not.
        finish(msgspec.structs.replace(result, is_error=False))

    job = JobId(params.id or "")
    match params.action:
        case "list":
            finish(_list(book.records(), output_bytes))
        case "output":
            finish(_output(params, book, job, output_bytes))
        case "wait":
            book.wait(job, Watcher(call_id, tell, progress=progress), params.timeout)
        case "stop":
            book.stop(job, Watcher(call_id, tell))
        case "write":
            finish(_write(params.input or "", book, job))


def _list(records: list[Record], output_bytes: int) -> Result:
    if not records:
        return text("There are no jobs.", structured={"jobs": []})
    lines = [
        f"{record.id}  {outcome(record)}  {record.started_at}  {_first_line(record.command)}" for record in records
    ]
    return text(
        clip_middle("\n".join(lines), output_bytes), structured={"jobs": [_facts(record) for record in records]}
    )


def _facts(record: Record) -> dict[str, object]:
    return {
        "id": record.id,
        "state": record.state.value,
        "status": outcome(record),
        "command": _first_line(record.command),
        "cwd": record.cwd,
        "pid": record.pid,
        "processes": list(record.pids),
        "startedAt": record.started_at,
        "durationMs": round(record.duration_s * 1000),
        "exitCode": record.exit_code,
        "signal": record.signal,
    }


def _output(params: JobsParams, book: JobBook, job: JobId, output_bytes: int) -> Result:
    record = book.record(job)
    page = book.page(job, params.stream, params.offset, min(params.limit or output_bytes, output_bytes))
    looked_after = record.state.live
    last = page.offset + len(page.data) >= page.size and not looked_after
    shown, used = terminal.page(page.data, last=last)
    after = page.offset + used
    more = after < page.size
    onward = f"more at offset {after}" if more or looked_after else "this is the end"
    lines = [f"[{note}]" for note in notes(record)]
    lines.append(f"[{params.stream} of {job}: bytes {page.offset} to {after} of {page.size}; {onward}]")
    body = shown if not shown or shown.endswith("\n") else shown + "\n"
    data = {
        "id": job,
        "state": record.state.value,
        "stream": params.stream,
        "text": shown,
        "offset": page.offset,
        "nextOffset": after,
        "size": page.size,
        "more": more,
        "exitCode": record.exit_code,
        "signal": record.signal,
    }
    return text(body + "\n".join([*lines, outcome(record)]), structured=data)


def _write(said: str, book: JobBook, job: JobId) -> Result:
    try:
        data = said.encode()
    except UnicodeEncodeError:
        raise BadArgument("input", "valid Unicode", "a lone surrogate") from None
    book.write(job, data)
    done = f"{len(data)} bytes written to {job}." if data else f"Standard input of {job} is closed."
    return text(done, structured={"id": job, "written": len(data), "closed": not data})


def _first_line(command: str) -> str:
    line = terminal.clean(command.strip().split("\n", 1)[0])
    return line if len(line) <= _COMMAND_SHOWN and line == command.strip() else line[:_COMMAND_SHOWN] + " …"


TOOL = Tool(
    spec=spec_for(JobsParams, name="jobs", title="Look after jobs", description=_DESCRIPTION, tier=Tier.EXECUTE),
    params=JobsParams,
    run=run,
)
