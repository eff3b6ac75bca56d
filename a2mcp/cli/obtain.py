"""``a2mcp obtain``: the programs of others that file sharing and the tunnel use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from a2mcp.cli import show

if TYPE_CHECKING:
    from a2mcp.cli.client import OperatorClient
    from a2mcp.obtain.programs import ProgramFacts


@click.command()
@click.argument("program", required=False)
@click.option(
    "--pin",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take the verified hashes of this file into the table of what may be fetched.",
)
@show.json_option
def obtain(program: str | None, pin: Path | None, *, as_json: bool) -> None:
    """Find or fetch a program that is not part of a2mcp.

    Without PROGRAM, all are listed.

    The programs are dufs, which can serve files, and cloudflared, which keeps a tunnel open.

    Looked for, in this order: the path in the settings (used as it is), the PATH of the daemon, what was fetched
    before, a download whose hash is pinned. A hash is never taken from where the bytes come from: with --pin you add
    one that you verified.

    \b
    A pin, at the least:   {"name": "dufs", "sha256": "64 hexadecimal digits"}
    Or in full:            {"name": …, "sha256": …, "platform": "linux-x64",
                            "version": …, "url": …, "member": "file in the archive"}
    Several:               an array of them
    """
    if pin is not None:
        _pin(pin, as_json=as_json)
        if program is None:
            return
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - the help needs no HTTP client

    client = OperatorClient(show.current_home())
    _list(client.programs() if program is None else (_obtained(client, program),), as_json=as_json)


def _pin(file: Path, *, as_json: bool) -> None:
    from a2mcp.config.paths import private_folder  # noqa: PLC0415 - as above
    from a2mcp.obtain import pins  # noqa: PLC0415 - as above

    home = show.current_home()
    private_folder(home.root)
    added = pins.add(home.pins, file, platform=pins.platform_key())
    if as_json:
        show.as_document(added)
        return
    for one in added:
        click.echo(f"pinned {one.name} {one.version} for {one.platform}: sha256 {one.sha256} of {one.url}")


def _obtained(client: OperatorClient, program: str) -> ProgramFacts:
    from a2mcp.cli import progress  # noqa: PLC0415 - as above
    from a2mcp.errors import CannotObtain  # noqa: PLC0415 - as above

    client.obtain(program)
    with progress.Watch() as watch:
        while (facts := _of(client, program)).state in ("wanted", "downloading"):
            watch.show(facts)
    if facts.error is not None:
        raise CannotObtain(show.visible(facts.error))
    return facts


def _of(client: OperatorClient, program: str) -> ProgramFacts:
    return next(one for one in client.programs() if one.name == program)


def _list(found: tuple[ProgramFacts, ...], *, as_json: bool) -> None:
    if as_json:
        show.as_document(found)
        return
    rows = ((one.name, one.state, one.version or "-", one.path or "-", _note(one)) for one in found)
    show.table(("PROGRAM", "STATE", "VERSION", "PATH", "NOTE"), rows, whole=("PATH",))


def _note(one: ProgramFacts) -> str:
    if one.error is not None:
        return one.error
    if one.state == "missing":
        return "would be fetched" if one.pinned else "no verified hash for this platform"
    return ""
