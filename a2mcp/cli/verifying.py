"""``a2mcp audit --verify``: whether the log is as the daemon wrote it, told to a person or a program.

Owns the questions to a running daemon, which knows how far it has written, and the words. The walk over the lines is
``a2mcp.audit.verify``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from a2mcp.audit.diagnosis import Fault
from a2mcp.audit.verify import Report, opened_files, opened_log, verify
from a2mcp.cli import show
from a2mcp.cli.client import OperatorClient
from a2mcp.errors import NoDaemon

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from a2mcp.config.paths import Home
    from a2mcp.http.ports import AuditFacts

_TRIES: Final = 5
"""A log that was rotated twice between the question and the look is looked at again."""

AGREES: Final = "agrees"
DISAGREES: Final = "disagrees"
NOT_RUNNING: Final = "not running"
NOT_ASKED: Final = "not asked"
_DAEMON: Final = {
    AGREES: "the running daemon has written so far: nothing is missing at the end",
    DISAGREES: "the running daemon has written something else",
    NOT_RUNNING: "no daemon runs: what was cut off at the end cannot be told",
    NOT_ASKED: "copies: what was cut off at the end cannot be told",
}
_PROVES: Final = """\
Who may write the files can write them anew, hashes and all. Only a hash that was kept elsewhere shows that: note the
last one, and ask for it later with --expect."""


class Told(msgspec.Struct, kw_only=True):
    """What is printed as JSON."""

    ok: bool
    daemon: str
    expected: bool | None
    """Whether the record that was expected is there; null when none was."""
    report: Report


def examine(home: Home, copies: Sequence[Path], expect: str | None) -> Told:
    """Verify a home's log, or copies of logs.

    Raises:
        OSError: a file cannot be read.
        A2mcpError: a daemon runs and does not answer.
    """
    return _of_copies(copies, expect) if copies else _of_log(home, expect)


def tell(told: Told, *, as_json: bool) -> None:
    """Print what was found."""
    if as_json:
        show.as_document(told)
    else:
        click.echo("\n".join(_lines(told)))


def _of_copies(paths: Sequence[Path], expect: str | None) -> Told:
    with opened_files(paths) as files:
        report, met = verify(files, _wanted(expect), copies=True)
    return _told(report, NOT_ASKED, met, expect)


def _of_log(home: Home, expect: str | None) -> Told:
    for left in reversed(range(_TRIES)):
        before = _asked(home)
        with opened_log(home.audit) as files:
            report, met = verify(files, [*_wanted(expect), *([before.hash] if before else [])])
        after = before and _asked(home)
        if report.fault is not None:
            return _told(report, NOT_ASKED, met, expect)
        if before is None or after is None:
            return _told(report, NOT_RUNNING, met, expect)
        fault = _against(report, before, after, met)
        if fault is None:
            return _told(report, AGREES, met, expect)
        if before.last >= report.first or not left:
            report.fault = msgspec.structs.replace(fault, file=fault.file or home.audit.name)
            break
    return _told(report, DISAGREES, met, expect)


def _asked(home: Home) -> AuditFacts | None:
    """How far the daemon has written; None when none runs, or one that makes no hashes."""
    try:
        facts = OperatorClient(home).status().audit
    except NoDaemon:
        return None
    return facts if facts.hash else None


def _against(report: Report, before: AuditFacts, after: AuditFacts, met: set[str]) -> Fault | None:
    """What speaks against a log that is whole by itself; the daemon was asked before and after it was read."""
    end = report.files[-1] if report.files else ""
    if before.last > report.last:
        what = f"The daemon has written up to record {before.last}, and the last one here is {report.last}."
        return Fault(end, report.lines + 1, "removed", what)
    if before.last and before.hash not in met:
        what = f"Record {before.last} is another than the daemon has written: all before it may be, too."
        return Fault(end, report.lines, "altered", what)
    if report.last > after.last:
        return Fault(end, report.lines, "inserted", f"The daemon has written up to record {after.last} only.")
    return None


def _wanted(expect: str | None) -> list[str]:
    return [] if expect is None else [expect]


def _told(report: Report, daemon: str, met: set[str], expect: str | None) -> Told:
    expected = None if expect is None else expect in met
    return Told(ok=report.fault is None and expected is not False, daemon=daemon, expected=expected, report=report)


def _lines(told: Told) -> Iterator[str]:
    report = told.report
    if report.fault is not None:
        yield f"{show.visible(report.fault.file)}:{report.fault.line}: {report.fault.kind}. {report.fault.text}"
    if told.expected is False:
        yield "The expected record is not there: it was rotated away, cut off or altered, or it lies behind the fault."
    yield _counted(report, "Up to there" if report.fault else "The log is whole:")
    if report.records:
        yield f"last record  {report.last}, hash {report.hash}"
    if report.fault is None:
        yield f"daemon       {_DAEMON[told.daemon]}"
    yield from _marks(report)
    yield from ("", _PROVES)


def _counted(report: Report, beginning: str) -> str:
    if not report.records:
        return f"{beginning} no record has a hash."
    return f"{beginning} {report.records} records, {report.first} to {report.last}, follow one another."


def _marks(report: Report) -> Iterator[str]:
    if report.unchained:
        yield f"no hash      {report.unchained} records, of a version that made none: nothing can be said of them"
    if report.lost:
        yield f"lost         {report.lost} records, which could not be written at their time"
    for torn in report.torn:
        yield f"torn         {show.visible(str(torn))}, by a crash, or it is being written now"
