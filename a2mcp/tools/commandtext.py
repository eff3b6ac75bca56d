"""A command's outcome in words and as data, for the tools that start commands and look after them.

Knows how a ``Report`` reads, not how it came about. The text always ends with the line that says how the command ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.host import terminal
from a2mcp.host.joblog import Ending, State
from a2mcp.tools.output import clip_middle, human_size
from a2mcp.tools.result import OURS, ResourceLink, Result, text

if TYPE_CHECKING:
    from a2mcp.host.capture import Excerpt
    from a2mcp.host.joblog import Record, Stream
    from a2mcp.host.run import Report
    from a2mcp.types import JobId

_ENDINGS: Final = {
    Ending.TIMEOUT: "The command timed out and was ended with everything it had started",
    Ending.STOPPED: "The command was stopped",
    Ending.CANCELLED: "The call was cancelled and its command ended",
    Ending.SHUTDOWN: "Aborted: the daemon is stopping and ended the command",
    Ending.ABANDONED: "The daemon failed to look after the command and killed it",
}
_WISHED: Final = {
    Ending.TIMEOUT: "The command timed out.",
    Ending.STOPPED: "The command was to be stopped.",
    Ending.CANCELLED: "The call was cancelled.",
    Ending.SHUTDOWN: "The daemon is stopping.",
    Ending.ABANDONED: "The daemon failed to look after the command.",
}
"""Of a command that goes on, or has not ended yet."""


def command_result(report: Report, *, output_bytes: int) -> Result:
    """Turn the report on a command into a result.

    Args:
        report: how it stands.
        output_bytes: text of one stream that is about enough; bad bytes, which take more room shown than raw, may
            exceed it by half before they are cut.
    """
    record = report.record
    room = output_bytes + output_bytes // 2
    out = clip_middle(_shown(report.stdout, record, "stdout"), room)
    err = clip_middle(_shown(report.stderr, record, "stderr"), room)
    parts = [_line_end(out)]
    if err:
        parts.append(f"[stderr]\n{_line_end(err)}")
    parts += [f"[{note}]\n" for note in notes(record)]
    parts.append(outcome(record))
    said = text("".join(parts), is_error=_failed(record), structured=_data(report, out, err))
    return said if record.id is None or not record.state.live else with_link(said, record.id)


def with_link(result: Result, job: JobId) -> Result:
    """Add the address of a job's output, for clients that read resources."""
    link = ResourceLink(uri=f"{OURS}jobs/{job}/output", name=f"Output of {job}", mime_type="text/plain")
    return msgspec.structs.replace(result, content=(*result.content, link))


def outcome(record: Record) -> str:
    """Say in one line how a command stands."""
    took = _seconds(record.duration_s)
    if record.state is State.RUNNING:
        return f"still running after {took} as job {record.id} (pid {record.pid})"
    if record.state is State.ORPHAN:
        pids = ", ".join(map(str, record.pids))
        return f"still running as pid {pids} (orphan: the daemon that ran it ended)"
    if record.state is State.LOST:
        return "lost: the daemon that ran it ended"
    if record.exit_code is None:
        return "ended; nobody saw its exit code"
    killed = f", killed by {record.signal}" if record.signal else ""
    return f"exit code {record.exit_code}{killed} ({took})"


def notes(record: Record) -> list[str]:
    """Say what else there is to know, one sentence each."""
    said = []
    if record.ending is not None:
        said.append(_wished(record, record.ending) if record.state is State.RUNNING else f"{_ENDINGS[record.ending]}.")
    if record.state is State.RUNNING:
        said.append(f"The command goes on. Use jobs with id={record.id}: action=wait, output, stop.")
    if record.state is State.BACKGROUND:
        how = "It ends by itself, by jobs action=stop, or with the daemon."
        said.append(f"{_remaining(record)}; it is job {record.id}. {how}")
    elif record.group_remains and record.ending is None:
        said.append(f"{_remaining(record)} (process group {record.pid}); this system lets nobody look after it.")
    elif record.group_remains:
        said.append(f"{_remaining(record)}: the system did not let the daemon end it.")
    if record.dropped:
        said.append(f"{human_size(record.dropped)} of output were dropped: there was no room to keep them.")
    return said


def _wished(record: Record, ending: Ending) -> str:
    """Say what is to become of a command that has not ended."""
    refused = f"The system did not let the daemon end it (pid {record.pid})."
    return f"{_WISHED[ending]} {refused if record.group_remains else 'It is being ended.'}"


def _remaining(record: Record) -> str:
    if not record.survivors:
        return "A background process still runs"
    who = ", ".join(f"pid {one.pid} {terminal.clean(one.name)}" for one in record.survivors)
    many = len(record.survivors)
    return f"A background process still runs ({who})" if many == 1 else f"{many} background processes still run ({who})"


def _failed(record: Record) -> bool:
    if record.ending not in (None, Ending.STOPPED):
        return True
    if record.state in (State.RUNNING, State.ORPHAN):
        return False
    return record.ending is None and record.exit_code != 0


def _data(report: Report, out: str, err: str) -> dict[str, object]:
    record = report.record
    data: dict[str, object] = {
        "state": record.state.value,
        "exitCode": record.exit_code,
        "signal": record.signal,
        "durationMs": round(record.duration_s * 1000),
        "stdout": out,
        "stderr": err,
        "timedOut": record.ending is Ending.TIMEOUT,
        "truncated": any(part.tail or part.dropped for part in (report.stdout, report.stderr)),
        "backgroundRemains": record.background_remains,
    }
    return data if record.id is None else data | {"jobId": record.id}


def _shown(part: Excerpt, record: Record, stream: Stream) -> str:
    """Write both ends of a stream with a note about what lies between them."""
    if not part.total:
        return ""
    if not part.tail and not part.dropped:
        return terminal.clean(terminal.decode(part.head))
    head = terminal.clean(terminal.decode(part.head, cut_after=True))
    tail = terminal.clean(terminal.decode(part.tail, cut_before=True))
    missing = part.total - len(part.head) - len(part.tail)
    if not missing:
        return head + tail
    how = "nothing keeps it"
    if part.total - part.dropped > len(part.head):
        wanted = f'"id": "{record.id}", "stream": "{stream}", "offset": {len(part.head)}'
        how = f'read it with jobs {{"action": "output", {wanted}}}'
    return f"{_line_end(head)}[… {human_size(missing)} not shown here; {how} …]\n{tail}"


def _line_end(part: str) -> str:
    return part if not part or part.endswith("\n") else part + "\n"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
