"""The servers that are compared, and how each comes onto this machine.

Every peer is installed in an environment of its own under ``.peers/``, so that nothing of it reaches ours. One that
cannot be installed (no network, no Node) is left out of the run, by name and with the reason.
"""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from benchmarks.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Callable

HERE: Final = Path(__file__).resolve().parent
PEERS: Final = HERE / ".peers"
OURS: Final = "a2mcp"
HELLO: Final = "waitress hello"
_INSTALL_SECONDS: Final = 300


class NotInstallable(Exception):
    """A peer cannot be had here; the text says why."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A server, ready to be started."""

    name: str
    version: str
    port: int
    command: tuple[str, ...]
    cwd: Path
    path: str = "/mcp"
    token: str | None = None
    speaks_mcp: bool = True
    home: Path | None = None
    """The folder of our own daemon's files."""


class Workplace(msgspec.Struct, frozen=True):
    """A temporary folder with the file that is read."""

    folder: Path

    @property
    def small(self) -> Path:
        """The small file of the ``read`` measurement."""
        return self.folder / "small.txt"


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        output = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise NotInstallable(f"{Path(command[0]).name}: {output[-1] if output else 'failed'}") from error
    return done.stdout.strip()


def _python_peer(folder: str, *packages: str) -> tuple[Path, str]:
    """Make an environment with these packages. Returns its interpreter and the first package's version."""
    python = PEERS / folder / "bin" / "python"
    name = packages[0].split(">", 1)[0]
    asking = (python, "-c", f"from importlib.metadata import version; print(version({name!r}))")
    try:
        return python, _run(*asking)
    except NotInstallable:
        _run(sys.executable, "-m", "venv", "--clear", PEERS / folder)
        _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python, _run(*asking)


def _node_peer(folder: str, package: str, *more: str) -> tuple[Path, str]:
    """Make a folder with these packages. Returns it and the first package's version."""
    place = PEERS / folder
    about = place / "node_modules" / package.rpartition("@")[0] / "package.json"
    if not about.is_file():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true}\n')
        _run("npm", "install", "--no-audit", "--no-fund", package, *more, cwd=place)
    return place, str(json.loads(about.read_bytes())["version"])


def checkout(work: Workplace, folder: Path, name: str, version: str) -> Server:
    """Our own daemon, run from a folder with its code."""
    home, token, port = work.folder / f"home-{name}", secrets.token_urlsafe(32)[:32], free_port()
    home.mkdir(mode=0o700, exist_ok=True)
    settings = home / "a2mcp.json"
    settings.touch(mode=0o600)
    settings.write_text(json.dumps({"port": port, "token": token, "drain_s": 1}))
    # The folder that a module is run from comes before what is installed.
    command = (sys.executable, "-m", "benchmarks.daemon")
    return Server(name=name, version=version, port=port, command=command, cwd=folder, path="/", token=token, home=home)


def _ours(work: Workplace) -> Server:
    from a2mcp import __version__  # noqa: PLC0415 - only the run itself needs it

    return checkout(work, HERE.parent, OURS, __version__)


def _hello(work: Workplace) -> Server:
    version = _run(sys.executable, "-c", "from importlib.metadata import version; print(version('waitress'))")
    port = free_port()
    command = (sys.executable, str(HERE / "peers" / "waitress_hello.py"), str(port))
    return Server(name=HELLO, version=version, port=port, command=command, cwd=work.folder, speaks_mcp=False)


def _mcp(work: Workplace) -> Server:
    python, version = _python_peer("mcp", "mcp>=2.3,<3", "uvicorn", "uvloop", "httptools")
    port = free_port()
    command = (str(python), str(HERE / "peers" / "mcp_sdk.py"), str(port), str(work.small))
    return Server(name="mcp (PyPI)", version=version, port=port, command=command, cwd=work.folder)


def _fastmcp(work: Workplace) -> Server:
    python, version = _python_peer("fastmcp", "fastmcp>=4,<5", "uvicorn", "uvloop", "httptools")
    port = free_port()
    command = (str(python), str(HERE / "peers" / "fastmcp_server.py"), str(port), str(work.small))
    return Server(name="fastmcp", version=version, port=port, command=command, cwd=work.folder)


def _typescript(work: Workplace) -> Server:
    node = shutil.which("node")
    if node is None:
        raise NotInstallable("node is not installed")
    place, version = _node_peer("node", "@modelcontextprotocol/sdk@1", "zod@4")
    shutil.copy(HERE / "peers" / "ts_sdk.mjs", place)
    port = free_port()
    command = (node, "ts_sdk.mjs", str(port), str(work.small))
    return Server(name="TypeScript SDK", version=version, port=port, command=command, cwd=place)


def _bun(work: Workplace) -> Server:
    place, version = _node_peer("bun", "bun@1")
    program = place / "node_modules" / ".bin" / "bun"
    _run(program, "--version")
    token = secrets.token_urlsafe(32)
    script, log = HERE / "peers" / "bun_estimate.mjs", work.folder / "bun.log"
    port = free_port()
    command = (str(program), str(script), str(port), str(work.small), token, str(log))
    return Server(name="Bun estimate", version=version, port=port, command=command, cwd=work.folder, token=token)


MAKERS: Final[dict[str, Callable[[Workplace], Server]]] = {
    OURS: _ours,
    HELLO: _hello,
    "mcp (PyPI)": _mcp,
    "fastmcp": _fastmcp,
    "TypeScript SDK": _typescript,
    "Bun estimate": _bun,
}


def gather(work: Workplace) -> tuple[list[Server], dict[str, str]]:
    """Install what is missing. Returns the servers that can run, and the reason for each that cannot."""
    servers, skipped = [], {}
    for name, make in MAKERS.items():
        try:
            servers.append(make(work))
        except NotInstallable as error:
            skipped[name] = str(error)
    return servers, skipped
