"""``a2mcp observe``: what happens, as it happens."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from a2mcp.cli import show
from a2mcp.errors import NoDaemon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from a2mcp.observe.event import Event, Wanted

HISTORY: Final = 20
AGAIN_S: Final = 1.0
"""Between two tries to reach a daemon that has gone."""
SILENCE_S: Final = 40.0
"""A stream that says nothing for so long has lost its other end: a living one says that it lives every 15 s."""


class _Options(msgspec.Struct, frozen=True, kw_only=True):
    """What click parsed; the names are those of the options."""

    history: int
    follow: bool
    tool: str | None
    status: str | None
    session: str | None
    path: str | None
    kind: str | None
    bell: bool
    as_json: bool


@click.command()
@click.option("--history", default=HISTORY, show_default=True, type=click.IntRange(0, 10_000), help="Earlier events.")
@click.option("--follow/--no-follow", default=True, show_default=True, help="Go on until Ctrl-C.")
@click.option("--tool", help="Only of this tool.")
@click.option("--status", help="Only with this status: running, ok, error, cancelled, aborted, waiting, denied …")
@click.option("--session", help="Only of this session; the beginning of its ID will do.")
@click.option("--path", help="Only what works at this path or below it.")
@click.option("--kind", help="Only of this kind: call, session, approval, job, record, warning.")
@click.option("--bell/--no-bell", default=True, show_default=True, help="Ring when a call waits for you.")
@show.json_option
def observe(**options: Any) -> None:
    """Watch calls, approvals, sessions, jobs and warnings.

    On a terminal, with colour unless NO_COLOR is set; with --json one event a line. When the daemon is started again,
    it goes on where it was; what nobody could see is said.
    """
    from a2mcp.observe.event import Wanted  # noqa: PLC0415 - the help needs none of it

    asked = _Options(**options)
    _check(asked)
    wanted = Wanted(tool=asked.tool, status=asked.status, session=asked.session, path=asked.path, kind=asked.kind)
    write = _json_writer() if asked.as_json else _text_writer(bell=asked.bell)
    with contextlib.suppress(KeyboardInterrupt):
        if asked.follow:
            _follow(wanted, asked.history, write)
        else:
            _list(wanted, asked.history, write)


def _check(asked: _Options) -> None:
    """Refuse what no event can be, which would be waited for in vain."""
    from a2mcp.observe.event import JOB, JOB_STATES, KINDS, STATUSES  # noqa: PLC0415 - as above

    whole = (*KINDS, *(f"{JOB}.{state}" for state in JOB_STATES))
    kinds = dict.fromkeys((*(kind.partition(".")[0] for kind in KINDS), *whole))
    for name, given, known in (("kind", asked.kind, kinds), ("status", asked.status, STATUSES)):
        if given is not None and given not in known:
            raise click.UsageError(f"No event has the {name} '{given}'. There are: {', '.join(known)}.")


def _list(wanted: Wanted, count: int, write: Callable[[Event], None]) -> None:
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - as above

    for event in OperatorClient(show.current_home()).events(wanted, limit=count) if count else ():
        write(event)


def _follow(wanted: Wanted, history: int, write: Callable[[Event], None]) -> None:
    """Watch until Ctrl-C. The daemon must be there at first; later it may go and come back."""
    after: int | None = None
    first = True
    while True:
        try:
            for event in _stream(wanted, after, history):
                after = event.sequence
                write(event)
        except NoDaemon:
            if first:
                raise
        first = False
        # Without an event so far there is nothing to go on from: what comes from now on is not history.
        history = 0
        time.sleep(AGAIN_S)


def _stream(wanted: Wanted, after: int | None, history: int) -> Iterator[Event]:
    """The events of one connection."""
    import http.client  # noqa: PLC0415 - as above

    from a2mcp.cli.client import UnixConnection, query_of  # noqa: PLC0415

    home = show.current_home()
    connection = UnixConnection(home.events_socket, SILENCE_S)
    try:
        chosen = {"after": after, "history": history, **msgspec.to_builtins(wanted)}
        connection.request("GET", f"/events?{query_of(chosen)}", headers={"Accept": "text/event-stream"})
        yield from _events(connection.getresponse())
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise NoDaemon(f"No daemon runs for {home.root}.", hint="Start one with `a2mcp start`.") from error
    except (OSError, http.client.HTTPException):
        return
    finally:
        connection.close()


def _events(lines: Iterable[bytes]) -> Iterator[Event]:
    from a2mcp.observe import event as events  # noqa: PLC0415 - as above

    for line in lines:
        if line.startswith(b"data: "):
            yield events.decode(line[len(b"data: ") :])


def _json_writer() -> Callable[[Event], None]:
    from a2mcp.observe import event as events  # noqa: PLC0415 - as above

    def write(event: Event) -> None:
        click.echo(events.encode(event))

    return write


def _text_writer(*, bell: bool) -> Callable[[Event], None]:
    from rich.console import Console  # noqa: PLC0415 - 60 ms that only text is worth

    from a2mcp.observe import render  # noqa: PLC0415
    from a2mcp.observe.event import WAITING  # noqa: PLC0415

    console = Console(highlight=False, soft_wrap=True, no_color="NO_COLOR" in os.environ or None)
    rings = bell and sys.stdout.isatty()

    def write(event: Event) -> None:
        width = console.width if console.is_terminal else 0
        for line in render.lines(event, width):
            console.print(line)
        if rings and event.kind == WAITING:
            console.bell()

    return write
