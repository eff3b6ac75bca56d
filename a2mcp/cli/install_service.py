"""``a2mcp install-service``: have the system run the daemon, from every login on."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Final

import click

from a2mcp.cli import show
from a2mcp.connect.errors import ClientFailed
from a2mcp.errors import A2mcpError, NoDaemon, UnusableFile

if TYPE_CHECKING:
    from a2mcp.connect.service import Service

_USUAL_DRAIN_S: Final = 30.0
_PATIENCE_S: Final = 60.0


@click.command("install-service", short_help="Have the system run the daemon.")
@click.option("--uninstall", is_flag=True, help="End it and remove the service.")
@click.option("--print", "only_print", is_flag=True, help="Print the service's file and do nothing.")
def install_service(*, uninstall: bool, only_print: bool) -> None:
    """Have systemd (Linux) or launchd (macOS) run the daemon for you.

    It is started now and at every login, and again when it dies, within limits. Today's PATH is kept for the commands
    that the tools run: install it again after a change.
    """
    service = _service()
    if only_print:
        click.echo(service.text, nl=False)
    elif uninstall:
        _uninstall(service)
    else:
        _install(service)


def _service() -> Service:
    from a2mcp.connect import service  # noqa: PLC0415 - the help needs none of it
    from a2mcp.connect.clients import place  # noqa: PLC0415 - as above

    where, home = place(os.environ, sys.platform), show.current_home()
    # SECURITY: -P keeps the service's folder, where anybody's `a2mcp` may lie, off the import path.
    command = (sys.executable, "-P", "-m", "a2mcp", "serve")
    if sys.platform == "darwin":
        return service.launchd(where.home, command, os.environ, drain_s=_drain_s(), log=home.daemon_log)
    return service.systemd(where.config, command, os.environ, drain_s=_drain_s())


def _drain_s() -> float:
    from a2mcp.config import load  # noqa: PLC0415 - as above

    loaded = load.inspect(show.current_home().config)
    return loaded.settings.drain_s if loaded else _USUAL_DRAIN_S


def _install(service: Service) -> None:
    from a2mcp.files import write_atomic  # noqa: PLC0415 - as above

    if service.path.exists():
        # A manager goes on with the old file until the service was ended; that it was not running is no error.
        for command in service.stop:
            with contextlib.suppress(ClientFailed):
                _run(command)
    elif _is_running():
        raise A2mcpError("A daemon runs already.", hint="End it with `a2mcp stop`; the service starts its own.")
    try:
        service.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(service.path, service.text.encode(), mode=0o600)
    except OSError as error:
        raise UnusableFile(f"{service.path} cannot be written: {error.strerror}.") from error
    click.echo(f"wrote {service.path}")
    for command in service.start:
        _run(command)
    click.echo(f"The daemon runs now and after every login. {service.note}")


def _is_running() -> bool:
    from a2mcp.cli.client import OperatorClient  # noqa: PLC0415 - as above

    try:
        OperatorClient(show.current_home()).status()
    except NoDaemon:
        return False
    return True


def _uninstall(service: Service) -> None:
    if not service.path.exists():
        click.echo(f"There is no service ({service.path}).")
        return
    for command in service.stop:
        _run(command)
    service.path.unlink(missing_ok=True)
    click.echo(f"removed {service.path}")
    for command in service.forget:
        _run(command)


def _run(command: tuple[str, ...]) -> None:
    import shlex  # noqa: PLC0415 - as above
    import subprocess  # noqa: PLC0415 - as above

    line = shlex.join(command)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClientFailed(
            f"`{line}` could not be run: {error}.", hint="The file is there; run it yourself."
        ) from error
    if done.returncode != 0:
        raise ClientFailed(f"`{line}` failed: {done.stderr.strip() or done.returncode}.", hint="The file is there.")
    click.echo(f"ran {line}")
