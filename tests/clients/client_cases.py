"""Which client is driven in which way against which address. Runs one of them and tells what came of it.

A case is a few commands; together they must name the tools and show what the called one printed. A client that calls
nothing without a model only has to connect and list.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import client_envs as envs
from client_tap import Tap

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Daemon

DRIVERS = Path(__file__).resolve().parent / "drivers"
ROOT = DRIVERS.parent.parent.parent
COMMAND = "expr 20000 + 333"
PRINTED = "20333"

CASE_S = 90
OLDEST_NODE = 20
URL, TOKEN = "<url>", "<token>"
"""Stand in a command for what is known when it runs."""

MODERN, LEGACY = "2026-07-28", "2025-11-25"


@dataclass(frozen=True)
class Case:
    """One client in one mode."""

    name: str
    needs: tuple[str, ...]
    commands: Callable[[], list[list[str]]]
    mcp: str | None
    """The version it ends up with on ``/mcp``; None: it is not driven there."""
    bridge: str | None = LEGACY
    """The same on ``/``."""
    calls: bool = True
    lists: str = "bash"
    """What the output shows when the tools were listed."""
    stdio: bool = False
    """It starts ``a2mcp stdio`` and sees no address."""

    @property
    def missing(self) -> list[str]:
        """What would have to be installed."""
        absent = [name for name in self.needs if name in envs.PINNED and not envs.installed(name)]
        return absent + [name for name in self.needs if name not in envs.PINNED and shutil.which(name) is None]


@dataclass
class Outcome:
    """What one run showed."""

    version: str
    listed: bool
    called: bool
    output: str = field(repr=False)


def _python(env: str, driver: str, *arguments: str) -> list[str]:
    return [envs.python(env), str(DRIVERS / f"{driver}.py"), *arguments]


def _node(env: str, driver: str, *arguments: str) -> list[str]:
    """Run a script beside its packages: that is where Node looks for them."""
    place = envs.ENVS / env / f"{driver}.mjs"
    shutil.copyfile(DRIVERS / f"{driver}.mjs", place)
    return [_system_node() or envs.node24(), str(place), *arguments]


@cache
def _system_node() -> str | None:
    """The machine's own Node, where it is as new as these packages need."""
    found = shutil.which("node")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout if found else "v0."
    return found if int(said[1:].partition(".")[0]) >= OLDEST_NODE else None


def _inspector(*era: str) -> list[list[str]]:
    usual = [envs.node24(), envs.program("inspector", "mcp-inspector"), "--cli", URL, "--transport", "http", *era,
             "--header", f"Authorization: Bearer {TOKEN}", "--format", "json"]  # fmt: skip
    call = ["--method", "tools/call", "--tool-name", "bash", "--tool-arg", f"command={COMMAND}"]
    return [[*usual, "--method", "tools/list"], [*usual, *call]]


def _fastmcp() -> list[list[str]]:
    program = envs.program("fastmcp", "fastmcp")
    return [
        [program, "list", URL, "--auth", TOKEN, "--json"],
        [program, "call", URL, "bash", f"command={COMMAND}", "--auth", TOKEN],
    ]


def _mcp_remote(client: list[str]) -> list[list[str]]:
    relay = [envs.node24(), envs.program("mcp-remote", "mcp-remote"), URL, "--allow-http", "--transport", "http-only",
             "--silent", "--header", f"Authorization:Bearer {TOKEN}"]  # fmt: skip
    return [[*client, *relay]]


def _mcp_proxy() -> list[list[str]]:
    relay = [envs.program("mcp-proxy", "mcp-proxy"), "--transport", "streamablehttp", "-H", "Authorization",
             f"Bearer {TOKEN}", URL]  # fmt: skip
    return [_python("mcp1", "mcp1", *relay)]


def _script(name: str, *arguments: str) -> list[list[str]]:
    return [["sh", str(DRIVERS / f"{name}.sh"), *arguments]]


_STDIO = [sys.executable, "-m", "a2mcp", "stdio", "--no-start"]

CASES = [
    Case("curl", ("curl",), lambda: _script("curl"), LEGACY),
    Case("curl, no handshake", ("curl",), lambda: _script("curl-modern"), MODERN, bridge=None),
    Case("PyPI mcp 1.30.0", ("mcp1",), lambda: [_python("mcp1", "mcp1")], LEGACY),
    Case("PyPI mcp 2.3.0, auto", ("mcp2",), lambda: [_python("mcp2", "mcp2", "auto")], MODERN),
    Case("PyPI mcp 2.3.0, legacy", ("mcp2",), lambda: [_python("mcp2", "mcp2", "legacy")], LEGACY),
    Case("PyPI mcp 2.3.0, pinned", ("mcp2",), lambda: [_python("mcp2", "mcp2", MODERN)], MODERN, bridge=None),
    Case("PyPI fastmcp 4.2.3", ("fastmcp",), lambda: [_python("fastmcp", "fastmcp_client")], MODERN),
    Case("PyPI fastmcp 4.2.3, command line", ("fastmcp",), _fastmcp, MODERN),
    Case("npm @modelcontextprotocol/sdk 1.32.2", ("sdk1", "node24"), lambda: [_node("sdk1", "sdk1")], LEGACY),
    Case("npm @modelcontextprotocol/client 2.4.0", ("client2", "node24"), lambda: [_node("client2", "client2", "legacy")], LEGACY),
    Case("npm @modelcontextprotocol/client 2.4.0, auto", ("client2", "node24"), lambda: [_node("client2", "client2", "auto")], MODERN),
    Case("npm @modelcontextprotocol/inspector 2.12.0", ("inspector", "node24"), _inspector, LEGACY),
    Case("npm @modelcontextprotocol/inspector 2.12.0, auto", ("inspector", "node24"),
         lambda: _inspector("--protocol-era", "auto"), MODERN),
    Case("npm @modelcontextprotocol/inspector 2.12.0, modern", ("inspector", "node24"),
         lambda: _inspector("--protocol-era", "modern"), MODERN, bridge=None),
    Case("a2mcp stdio under PyPI mcp 1.30.0", ("mcp1",), lambda: [_python("mcp1", "mcp1", *_STDIO)], LEGACY,
         bridge=None, stdio=True),
    Case("a2mcp stdio under PyPI mcp 2.3.0, auto", ("mcp2",), lambda: [_python("mcp2", "mcp2", "auto", *_STDIO)], MODERN,
         bridge=None, stdio=True),
    Case("npm mcp-remote 0.15.1 under PyPI mcp 1.30.0", ("mcp-remote", "node24", "mcp1"),
         lambda: _mcp_remote(_python("mcp1", "mcp1")), LEGACY),
    Case("npm mcp-remote 0.15.1 under PyPI mcp 2.3.0, auto", ("mcp-remote", "node24", "mcp2"),
         lambda: _mcp_remote(_python("mcp2", "mcp2", "auto")), MODERN),
    Case("PyPI mcp-proxy 0.13.0 under PyPI mcp 1.30.0", ("mcp-proxy", "mcp1"), _mcp_proxy, LEGACY),
    Case("Claude Code 2.1.332", ("claude",), lambda: _script("claude", envs.program("claude", "claude")), MODERN,
         calls=False, lists="Connected"),
    Case("Codex CLI 0.171.0", ("codex",), lambda: _script("codex", envs.program("codex", "codex")), "2025-06-18",
         calls=False),
    # Its library does not know the one version that the bridge answers with.
    Case("Gemini CLI 0.61.0", ("gemini", "node24"),
         lambda: _script("gemini", envs.node24(), envs.program("gemini", "gemini")), "2025-06-18", bridge=None,
         calls=False, lists="Connected"),
]  # fmt: skip


def run(case: Case, path: str, daemon: Daemon, folder: Path) -> Outcome:
    """Drive a client against one path of a daemon; ``folder`` is the home of its user."""
    token = daemon.token
    with Tap(daemon.port) as tap:
        url = f"http://127.0.0.1:{tap.port}{path}"
        environment = _environment(folder, daemon.home, URL=url, TOKEN=token, COMMAND=COMMAND)
        deadline = time.monotonic() + CASE_S
        output = ""
        for command in case.commands():
            ready = [part.replace(URL, url).replace(TOKEN, token) for part in command]
            output += _output(ready, environment, folder, deadline - time.monotonic())
        version, listed = tap.version, case.lists in output
    if case.stdio:
        version = output.partition("version ")[2].partition("\n")[0]
    return Outcome(version, listed, PRINTED in output, output)


def _environment(folder: Path, home: Path, **more: str) -> dict[str, str]:
    """A user's environment with a folder of its own, so that no client finds or leaves anything elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("A2MCP_", "PYTEST_"))}
    own = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / ".config"), "CODEX_HOME": str(folder)}
    ours = {
        "A2MCP_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
        "FASTMCP_CHECK_FOR_UPDATES": "off",
    }
    return kept | own | ours | more


def _output(command: list[str], environment: dict[str, str], folder: Path, seconds: float) -> str:
    # What cannot end by itself is ended with everything it started.
    with (folder / "printed.txt").open("w+b") as printed:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed,
            process_group=0,
        )  # fmt: skip
        try:
            process.wait(max(seconds, 1))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
        printed.seek(0)
        return printed.read().decode("utf-8", "replace")
