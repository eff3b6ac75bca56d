"""The daemon in the background: spawned detached, spoken to through its own channel, never signalled."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

import a2mcp
from a2mcp.cli import show
from a2mcp.cli.client import OperatorClient
from a2mcp.config import instance, load
from a2mcp.config.paths import private_folder
from a2mcp.errors import A2mcpError, AlreadyServing, NoDaemon, UnusableFile, remedy

if TYPE_CHECKING:
    from a2mcp.config.paths import Home
    from a2mcp.http.ports import Status

PATIENCE_S: Final = 10.0
LARGEST_LOG: Final = 1024 * 1024
"""Bytes of daemon.log at which a start begins a new one; one older is kept."""

_LOOK_S: Final = 0.02
_GRACE_S: Final = 10.0
"""On top of the time that calls in flight have."""
_USUAL_DRAIN_S: Final = 30.0
_LAST_WORDS: Final = 5
"""Lines of a dead daemon's that are shown."""
_WARNING: Final = "[a2mcp] warning:"


def start(home: Home) -> Status:
    """Start a daemon and wait until it serves; what it warned of meanwhile is repeated on stderr.

    Raises:
        AlreadyServing: one does already.
        StartError: it died; its exit code is passed on.
        A2mcpError: it did not answer in time.
    """
    _refuse_second(home)
    began, process = _spawn(home, daemon_command())
    facts = _wait(home, process, began)
    for line in _said(home, began):
        if line.startswith(_WARNING):
            click.echo(show.visible(line), err=True)
    return facts


def stop(home: Home, patience: float | None) -> None:
    """Ask the daemon to drain and exit, and wait until it is gone.

    Args:
        home: whose daemon.
        patience: seconds to wait; None is a little over what calls in flight have.

    Raises:
        NoDaemon: none runs.
        A2mcpError: it is still there.
    """
    OperatorClient(home).stop()
    patience = _patience(home) if patience is None else patience
    deadline = time.monotonic() + patience
    # The lock, not the pid: a dead process that its parent has not collected still has one.
    while instance.is_served(home):
        if time.monotonic() >= deadline:
            raise A2mcpError(
                f"The daemon is still there after {patience:g} s.", hint="It was asked to stop and goes on draining."
            )
        time.sleep(_LOOK_S)


def daemon_command() -> list[str]:
    """How a daemon is run in the foreground.

    SECURITY: ``-P`` keeps the current folder, where anybody's ``a2mcp`` may lie, off the import path; it is left out
    only where that folder is where we ourselves came from.
    """
    came_from = Path(a2mcp.__file__).resolve().parent.parent
    isolated = [] if came_from == Path.cwd() else ["-P"]
    return [sys.executable, *isolated, "-m", "a2mcp", "serve"]


def _refuse_second(home: Home) -> None:
    try:
        facts = OperatorClient(home).status()
    except NoDaemon:
        return
    if facts.stopping:
        raise AlreadyServing(
            f"The daemon of {home.root} (pid {facts.pid}) is stopping; calls in flight: {facts.calls_in_flight}.",
            hint="Wait for its end with `a2mcp stop`, then start again.",
        )
    raise AlreadyServing(
        f"Another daemon serves {home.root} at {facts.bridge_url} (pid {facts.pid}, since {facts.started_at}).",
        hint="Stop it with `a2mcp stop`, or set A2MCP_HOME to another folder.",
    )


def _spawn(home: Home, command: list[str]) -> tuple[int, subprocess.Popen[bytes]]:
    """Start the process; returned with where in the log its words begin."""
    for warning in private_folder(home.root):
        click.echo(f"warning: {warning}", err=True)
    try:
        log = _open_log(home.daemon_log)
    except OSError as error:
        text = f"{home.daemon_log} cannot be written: {error.strerror}."
        raise UnusableFile(text, hint=remedy(error)) from error
    try:
        began = os.fstat(log).st_size
        return began, subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, close_fds=True
        )
    finally:
        os.close(log)


def _open_log(path: Path) -> int:
    if path.exists() and path.stat().st_size > LARGEST_LOG:
        path.rename(path.with_name(f"{path.name}.1"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


def _wait(home: Home, process: subprocess.Popen[bytes], began: int) -> Status:
    deadline = time.monotonic() + PATIENCE_S
    client = OperatorClient(home, timeout=PATIENCE_S)
    while time.monotonic() < deadline:
        try:
            facts = client.status()
        except NoDaemon:
            facts = None
        # Another start may have been faster by a moment. Ours is waited for all the same: while it tries, it would take
        # over from one that is stopped.
        if facts is not None and facts.pid == process.pid:
            return facts
        if process.poll() is not None:
            raise _died(home, process.returncode, began)
        time.sleep(_LOOK_S)
    raise A2mcpError(
        f"The daemon (pid {process.pid}) did not answer within {PATIENCE_S:.0f} s.",
        hint=f"It may still be starting; {home.daemon_log} has what it prints.",
    )


class StartError(A2mcpError):
    """The daemon ended before it served; its exit code is ours."""

    def __init__(self, code: int, words: list[str]) -> None:
        super().__init__(f"The daemon ended at once (exit code {code}). It said:", hint="\n       ".join(words))
        self.exit_code = code if code > 0 else 1  # type: ignore[misc]


def _died(home: Home, code: int, began: int) -> StartError:
    return StartError(code, _said(home, began)[-_LAST_WORDS:])


def _said(home: Home, began: int) -> list[str]:
    """The lines in the log from there on."""
    with home.daemon_log.open("rb") as log:
        log.seek(began)
        return log.read().decode("utf-8", "replace").splitlines()


def _patience(home: Home) -> float:
    try:
        loaded = load.inspect(home.config)
    except A2mcpError:
        loaded = None
    return _GRACE_S + (loaded.settings.drain_s if loaded else _USUAL_DRAIN_S)
