"""Where the files of one daemon live, and which folders it trusts.

Owns the places and the rules for folders. Knows nothing of what is written into them.

Three places by default, all found through ``platformdirs``: the settings in the user's configuration folder, everything
else (log, lock, endpoint, socket, jobs) in the user's state folder. ``A2MCP_HOME`` puts all of it into one folder;
``A2MCP_CONFIG``, ``A2MCP_AUDIT`` and ``A2MCP_INSTALLS`` move one file each.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.errors import SettingsError, UnusableFile, remedy

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_SOCKET_PATH: Final = 100
"""Bytes of a Unix socket's path that every system takes (Linux 107, macOS 103)."""

CONFIG: Final = "a2mcp.json"
_OTHER_FILE: Final = "Set A2MCP_CONFIG to a file in your own folder."
OURS: Final = frozenset(
    {
        CONFIG,
        "agents.db",
        "agents.db-shm",
        "agents.db-wal",
        "a2mcp.log",
        "a2mcp.log.1",
        "bin",
        "daemon.log",
        "daemon.log.1",
        "endpoint.json",
        "events.db",
        "events.db-shm",
        "events.db-wal",
        "events.sock",
        "grants.json",
        "installs.json",
        "jobs",
        "lock",
        "models.yml",
        "operator.sock",
        "page.html",
        "pins.json",
    }
)


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """The places of one daemon. Two daemons with different homes share nothing."""

    root: Path
    """The folder of the lock and the endpoint: the identity of the daemon."""
    config: Path
    audit: Path
    installs: Path
    """The record of binaries that were fetched."""
    programs: Path
    """The folder of those binaries."""
    pins: Path
    """What the operator allows to be fetched, beside the table that comes with the release."""
    endpoint: Path
    lock: Path
    socket: Path
    """The operator's channel; elsewhere than in ``root`` when its path would be too long for a socket."""
    jobs: Path
    events: Path
    """The store of what was observed."""
    agents: Path
    """The transcripts of agents."""
    grants: Path
    """What the operator has allowed for more than one call."""
    daemon_log: Path
    """What a daemon in the background prints."""
    models: Path
    """The models that the host may ask, written by the operator."""

    @property
    def events_socket(self) -> Path:
        """Where events are watched; beside the operator's channel, under a name that is not longer."""
        return self.socket.with_name("events.sock")


def home_from_environment(environ: Mapping[str, str]) -> Home:
    """Say where everything lives for this user and environment. Touches no file.

    Raises:
        SettingsError: a variable that names no usable place.
    """
    root = _variable(environ, "A2MCP_HOME")
    config_folder = root
    if root is None or config_folder is None:
        config_folder, root = _user_folders()
    root = Path(os.path.realpath(root))
    return Home(
        root=root,
        config=_variable(environ, "A2MCP_CONFIG") or config_folder / CONFIG,
        audit=_variable(environ, "A2MCP_AUDIT") or root / "a2mcp.log",
        installs=_variable(environ, "A2MCP_INSTALLS") or root / "installs.json",
        programs=root / "bin",
        pins=root / "pins.json",
        endpoint=root / "endpoint.json",
        lock=root / "lock",
        socket=_socket_path(root),
        jobs=root / "jobs",
        events=root / "events.db",
        agents=root / "agents.db",
        grants=root / "grants.json",
        daemon_log=root / "daemon.log",
        models=root / "models.yml",
    )


def private_folder(folder: Path) -> list[str]:
    """Make a folder that only this user can change, or make the one that is there so.

    A new folder gets mode 0700, and so does one that holds nothing but our files. One that holds other things as well
    keeps its mode as long as nobody else can write to it: every file of ours in it is 0600 by itself.

    Returns:
        Warnings about what was tightened or is wider than it should be.

    Raises:
        UnusableFile: the folder cannot be made, is not a folder, belongs to someone else, or is shared on purpose.
    """
    try:
        _make_folders(folder)
        found = folder.stat()
        _refuse_foreign_folder(folder, found)
        return _tighten_folder(folder, stat.S_IMODE(found.st_mode))
    except OSError as error:
        raise UnusableFile(
            f"The folder {folder} cannot be used: {error.strerror}.",
            hint=remedy(error, "Set A2MCP_HOME to a folder that you can write to."),
        ) from error


def trusted_parent(folder: Path) -> list[str]:
    """Make sure that nobody else can exchange a file in this folder; make the folder (0700) when it is missing.

    Root may own it, and a sticky folder such as ``/tmp`` will do: others cannot touch our file there.

    Returns:
        A warning when other users could write to it and no longer can.

    Raises:
        UnusableFile: others can write to it and it is not ours to change.
    """
    try:
        _make_folders(folder)
        found = folder.stat()
        _require_folder(folder, found)
        if found.st_uid not in {0, os.geteuid()}:
            raise UnusableFile(
                f"The folder {folder} belongs to another user, who could exchange the settings in it.", hint=_OTHER_FILE
            )
        if found.st_mode & stat.S_ISVTX or not found.st_mode & 0o022:
            return []
        mode = stat.S_IMODE(found.st_mode)
        folder.chmod(mode & ~0o022)
    except OSError as error:
        raise UnusableFile(
            f"The folder {folder} cannot be used: {error.strerror}.",
            hint=remedy(error, _OTHER_FILE),
        ) from error
    return [f"Other users could write to the folder {folder} (mode {mode:04o}); they no longer can."]


def private_socket_folder(folder: Path) -> None:
    """Make the folder of a socket that does not fit into the home; it must be ours alone (0700) and no link.

    Raises:
        UnusableFile: somebody else made it first, or it is not such a folder.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise UnusableFile(
            f"The folder {folder} for the socket cannot be made: {error.strerror}.", hint=remedy(error)
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise UnusableFile(
            f"The folder {folder} for the operator's socket is not a private folder of this user.",
            hint="Remove it, or set A2MCP_HOME to a folder with a shorter path.",
        )


def _user_folders() -> tuple[Path, Path]:
    import platformdirs  # noqa: PLC0415 - not needed where A2MCP_HOME is set, and slow

    try:
        config = platformdirs.user_config_path("a2mcp", appauthor=False)
        state = platformdirs.user_state_path("a2mcp", appauthor=False)
    except RuntimeError:  # what newer releases do; older ones leave the tilde in the path
        config = state = Path("~")
    if not (config.is_absolute() and state.is_absolute()):
        raise SettingsError(
            "HOME", "must say where this user's files live", hint="Set HOME, or set A2MCP_HOME to an absolute path."
        )
    return config, state


def _variable(environ: Mapping[str, str], name: str) -> Path | None:
    """Read a path from the environment; an empty value counts as unset, as everywhere in XDG."""
    value = environ.get(name, "")
    if not value:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SettingsError(name, "must be valid UTF-8") from None
    # A unit file or a Dockerfile has no shell that expands a tilde.
    path = Path(os.path.expanduser(value))  # noqa: PTH111 - Path.expanduser raises where this one leaves the tilde
    if not path.is_absolute():
        raise SettingsError(
            name,
            f"must be an absolute path, not '{value}'",
            hint="A relative one would mean another place for every folder a command is started in.",
        )
    return path


def _socket_path(root: Path) -> Path:
    """Put the socket into the home, or, where its path would be too long, into a short place named by the home.

    The short place depends on the machine and the home alone, not on ``XDG_RUNTIME_DIR``: a command started by cron
    must find the daemon that a desktop session started.
    """
    path = root / "operator.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    import hashlib  # noqa: PLC0415 - only for a home with a very long path

    name = f"a2mcp-{os.geteuid()}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}"
    runtime = Path(f"/run/user/{os.geteuid()}")
    place = runtime if os.access(runtime, os.W_OK) else Path("/tmp")  # noqa: S108 - private_socket_folder checks it
    return place / name / "operator.sock"


def _make_folders(folder: Path) -> None:
    """Make a folder and its missing parents, all 0700: ``mkdir(parents=True)`` leaves the parents to the umask."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)


def _require_folder(folder: Path, found: os.stat_result) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise UnusableFile(f"{folder} is not a folder.", hint="Move it away, or name another folder.")


def _refuse_foreign_folder(folder: Path, found: os.stat_result) -> None:
    _require_folder(folder, found)
    if found.st_uid != os.geteuid():
        raise UnusableFile(
            f"The folder {folder} belongs to another user.", hint="Set A2MCP_HOME to a folder of your own."
        )
    if found.st_mode & stat.S_ISVTX:
        raise UnusableFile(
            f"The folder {folder} is shared by all users.", hint="Set A2MCP_HOME to a folder of its own inside it."
        )


def _tighten_folder(folder: Path, mode: int) -> list[str]:
    if not mode & 0o077:
        return []
    if {entry.name for entry in folder.iterdir()} <= OURS:
        folder.chmod(0o700)
        return [f"The folder {folder} was open to other users (mode {mode:04o}); it is 0700 now."]
    if mode & 0o022:
        folder.chmod(mode & ~0o022)
        return [f"Other users could write to the folder {folder} (mode {mode:04o}); they no longer can."]
    return [f"The folder {folder} can be read by other users (mode {mode:04o}) and holds more than our files."]
