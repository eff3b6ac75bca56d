"""Connects a client and takes that back: with the client's own command where it has one, else in its file.

Both do nothing where nothing is to do, and both can say what they would do instead. Knows the daemon by its address
only.
"""

from __future__ import annotations

import difflib
import enum
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.connect.clients import says_the_same
from a2mcp.connect.errors import ClientFailed
from a2mcp.connect.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from a2mcp.connect.clients import Client, Server

_PATIENCE_S: Final = 60.0


class Done(enum.Enum):
    """What came of it."""

    ADDED = "added"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    RESTORED = "restored"
    REMOVED = "removed"
    ABSENT = "absent"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, or in a dry run what would be."""

    done: Done
    path: Path
    backup: Path | None = None
    command: tuple[str, ...] = ()
    """The client's own command, where that did it."""
    diff: str = ""
    """The changed lines, without the token."""


def connect(client: Client, path: Path, server: Server, *, own: bool = True, dry: bool = False) -> Report:
    """Make a client know a server.

    Args:
        client: which.
        path: its settings file.
        server: what it shall know.
        own: use its own command if it is installed.
        dry: change nothing.

    Raises:
        BrokenFile: the file is not understood; it is as it was.
        ClientFailed: its own command failed.
        OSError: the file cannot be written; it is as it was.
    """
    settings = Settings(client, path)
    existing = settings.entry(server.name)
    private = server.token is not None
    if existing is not None and says_the_same(existing, client.entry(server)) and (settings.is_private or not private):
        return Report(done=Done.UNCHANGED, path=path)
    command = _adding(client, server) if own and existing is None else ()
    if command:
        backup = None if dry else _run(command, client, settings)
        return Report(done=Done.ADDED, path=path, command=command, backup=backup)
    text, update = settings.with_server(server), existing is not None
    diff = _diff(settings.text, text, server.token)
    backup = None if dry else settings.write(text, private=private, update=update)
    return Report(done=Done.REPLACED if update else Done.ADDED, path=path, backup=backup, diff=diff)


def disconnect(client: Client, path: Path, name: str, *, own: bool = True, dry: bool = False) -> Report:
    """Make a client forget a server.

    A file that nobody changed since gets its old bytes back; from any other one the server is taken out.

    Raises:
        BrokenFile: the file is not understood; it is as it was.
        ClientFailed: its own command failed.
        OSError: the file cannot be written; it is as it was.
    """
    settings = Settings(client, path)
    if settings.entry(name) is None:
        return Report(done=Done.ABSENT, path=path)
    if not dry and settings.restore(name):
        return Report(done=Done.RESTORED, path=path)
    command = _installed(client.remove(name)) if own and client.remove else ()
    text = "" if command else settings.without(name)
    diff = "" if command else _diff(settings.text, text, None)
    if dry:
        return Report(done=Done.REMOVED, path=path, command=command, diff=diff)
    backup = _run(command, client, settings) if command else settings.write(text)
    settings.forget_absence()
    return Report(done=Done.REMOVED, path=path, command=command, backup=backup, diff=diff)


def _adding(client: Client, server: Server) -> tuple[str, ...]:
    """Say how the client itself would add it: only a reference goes there, for others can read an argument."""
    if client.add is None or server.command or server.token is not None:
        return ()
    return _installed(client.add(server, f"Bearer {client.reference}"))


def _installed(command: list[str]) -> tuple[str, ...]:
    program = shutil.which(command[0])
    return (program, *command[1:]) if program else ()


def _run(command: tuple[str, ...], client: Client, settings: Settings) -> Path | None:
    """Run a client's own command and keep what it changed."""
    hint = "Use --no-cli to have its file edited instead."
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClientFailed(f"{command[0]} could not be used: {error}.", hint=hint) from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise ClientFailed(f"{command[0]} failed (exit code {done.returncode}): {said}", hint=hint)
    after = Settings(client, settings.path).before
    # A client that keeps its servers elsewhere has not touched this file.
    if after is None or after == settings.before:
        return None
    kept = settings.keep(after)
    return None if settings.before is None else kept


def _diff(before: str, after: str, token: str | None) -> str:
    # No lines around the changed ones: a settings file has other people's secrets in it.
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    text = "\n".join(line for line in lines if not line.startswith("@@"))
    return text.replace(token, f"{token[:6]}…") if token else text
