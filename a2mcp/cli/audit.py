"""``a2mcp audit``: the log of calls, for people."""

from __future__ import annotations

import contextlib
import errno
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from a2mcp.cli import show
from a2mcp.errors import UnusableFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2mcp.audit.query import Call, Filter
    from a2mcp.audit.record import Record

T = TypeVar("T")

_LOOK_S: Final = 0.2
_SHOWN: Final = 50


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """What click parsed; the names are those of the options."""

    follow: bool
    tool: str | None
    session: str | None
    phase: str | None
    unfinished: bool
    last: int
    verify: bool
    expect: str | None
    files: tuple[Path, ...]
    as_json: bool

    @property
    def choosy(self) -> bool:
        """Whether some calls only are asked for."""
        return self.follow or self.unfinished or any((self.tool, self.session, self.phase))


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Print records as they are written, until Ctrl-C.")
@click.option("--tool", help="Only calls of this tool.")
@click.option("--session", help="Only calls of this session; the beginning of its ID will do.")
@click.option("--phase", type=click.Choice(["start", "done"]), help="Only calls of which this is the last known.")
@click.option("--unfinished", is_flag=True, help="Only calls that never ended.")
@click.option("--last", default=_SHOWN, show_default=True, type=click.IntRange(min=0), help="How many; 0 for all.")
@click.option("--verify", is_flag=True, help="Look whether records were altered, removed, inserted or reordered.")
@click.option("--expect", metavar="HASH", help="With --verify: the record with this hash must be there.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@show.json_option
@click.pass_context
def audit(ctx: click.Context, /, **options: Any) -> None:
    """Show the calls in the audit log.

    The newest is the last. The daemon need not run.

    With --verify no calls are shown. FILES are copies of logs then, the oldest first. It exits with 0 when the log is
    whole, with 1 when a record is not as it was written or the expected one is not there, and with 2 when a file cannot
    be read.
    """
    asked = _Options(**options)
    _check(asked)
    if asked.verify:
        ctx.exit(int(not _verify(asked)))
    _show(asked)


def _check(asked: _Options) -> None:
    if asked.follow and asked.unfinished:
        raise click.UsageError("--follow shows records as they come and --unfinished calls that are over: choose one.")
    if asked.verify and asked.choosy:
        raise click.UsageError("--verify looks at every record: it goes with --expect, --json and files only.")
    if not asked.verify and (asked.files or asked.expect is not None):
        raise click.UsageError("files and --expect belong to --verify.")


def _verify(asked: _Options) -> bool:
    from a2mcp.cli import verifying  # noqa: PLC0415 - whoever looks at calls verifies nothing

    home = show.current_home()
    try:
        told = verifying.examine(home, asked.files, asked.expect)
    except OSError as error:
        where = error.filename or home.audit
        why = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise UnusableFile(f"{where} cannot be read: {why}.") from error
    verifying.tell(told, as_json=asked.as_json)
    return told.ok


def _show(asked: _Options) -> None:
    from a2mcp.audit.query import Filter  # noqa: PLC0415 - the help reads no log

    path = show.current_home().audit
    wanted = Filter(tool=asked.tool, session=asked.session, phase=asked.phase)
    if asked.follow:
        _follow(path, wanted, as_json=asked.as_json)
    else:
        _list(path, wanted, asked)


def _reading(path: Path, found: Iterable[T]) -> Iterator[T]:
    """Go through what is read; what happens to whoever prints it is another's fault than the log's."""
    try:
        yield from found
    except OSError as error:
        raise UnusableFile(f"{path} cannot be read: {error.strerror}.") from error


def _list(path: Path, wanted: Filter, asked: _Options) -> None:
    from a2mcp.audit import query  # noqa: PLC0415 - as above

    found = query.unfinished(path, wanted) if asked.unfinished else query.calls(path, wanted)
    shown: deque[Call] = deque(_reading(path, found), maxlen=asked.last or None)
    if asked.as_json:
        show.as_document([_facts(call) for call in shown])
    elif not shown:
        click.echo(_nothing(asked))
    else:
        show.table(("TIME", "TOOL", "OUTCOME", "TOOK", "SESSION", "CLIENT", "ARGUMENTS"), map(_row, shown))


def _nothing(asked: _Options) -> str:
    if asked.tool or asked.session or asked.phase:
        return "No such call is on record."
    return "Every call on record has ended." if asked.unfinished else "No call is on record."


def _follow(path: Path, wanted: Filter, *, as_json: bool) -> None:
    from a2mcp.audit import query  # noqa: PLC0415 - as above

    with contextlib.suppress(KeyboardInterrupt):
        for record in _reading(path, query.follow(path, _wait, wanted)):
            click.echo(msgspec.json.encode(record).decode() if as_json else _line(record))


def _wait() -> bool:
    time.sleep(_LOOK_S)
    return True


def _facts(call: Call) -> dict[str, Any]:
    record = call.record
    return {
        "id": record.id,
        "session": record.sid,
        "client": _client(record),
        "tool": record.tool,
        "started": call.start.ts if call.start else None,
        "ended": call.done.ts if call.done else None,
        "seconds": call.seconds,
        "outcome": _outcome(call),
        "args": record.args,
    }


def _row(call: Call) -> tuple[str, ...]:
    record = call.record
    took = "-" if call.seconds is None else f"{call.seconds:.3f} s"
    started = (call.start or record).ts
    who = (show.short(record.sid), _client(record) or "-")
    return show.moment(started), record.tool, _outcome(call), took, *who, _text(record.args)


def _line(record: Record) -> str:
    who = (record.sid or "-", _client(record) or "-")
    cells = (record.ts, record.phase, record.tool, _error_mark(record), *who, _text(record.args))
    return "\t".join(show.visible(cell) for cell in cells)


def _outcome(call: Call) -> str:
    return "unfinished" if call.done is None else _error_mark(call.done)


def _error_mark(record: Record) -> str:
    if record.is_error is msgspec.UNSET:
        return "-"
    if record.ended is not msgspec.UNSET:
        return record.ended
    return "error" if record.is_error else "ok"


def _client(record: Record) -> str | None:
    return None if record.client is msgspec.UNSET else record.client


def _text(args: msgspec.Raw) -> str:
    return bytes(args).decode("utf-8", "replace")
