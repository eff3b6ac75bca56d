"""``endpoint.json``: the address of the running daemon, for programs of the same user. Removed at exit.

It is news, not proof: after a kill it stays behind, and only the instance's lock says whether a daemon runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.errors import UnusableFile, remedy

if TYPE_CHECKING:
    from pathlib import Path

LARGEST: Final = 64 * 1024
"""Bytes. What lies there may be anything, even a device that never ends."""
_FROM_HERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # Looked up, not listened on.


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where the daemon serves, and what a client needs to use it."""

    url: str
    """The standard dialect: ``http://host:port/mcp``."""
    bridge_url: str
    """The bridge dialect: ``http://host:port/``."""
    token: str
    pid: int
    version: str
    started_at: str

    def __repr__(self) -> str:
        # SECURITY: the one that a struct writes by itself shows the token.
        return f"Endpoint(url={self.url!r}, pid={self.pid})"


def publish(path: Path, endpoint: Endpoint) -> None:
    """Write the file, 0600 from birth and whole at any moment; again after the token was rotated.

    Raises:
        UnusableFile: it cannot be written.
    """
    from a2mcp.files import write_atomic  # noqa: PLC0415 - the command line only reads

    data = msgspec.json.format(msgspec.json.encode(endpoint), indent=2) + b"\n"
    try:
        write_atomic(path, data, mode=0o600)
    except OSError as error:
        raise UnusableFile(f"{path} cannot be written: {error.strerror}.", hint=remedy(error)) from error


def read(path: Path) -> Endpoint | None:
    """Read the file; None when it is missing or no endpoint."""
    from a2mcp import jsonfile  # noqa: PLC0415 - nor does everything that only names the file

    try:
        return jsonfile.read(path, LARGEST, Endpoint)
    except (OSError, ValueError):
        return None


def withdraw(path: Path, *, pid: int) -> None:
    """Remove the file if it speaks of this process; another's is left alone."""
    endpoint = read(path)
    if endpoint is not None and endpoint.pid == pid:
        path.unlink(missing_ok=True)


def from_here(host: str) -> str:
    """Give the host at which its own machine reaches a daemon that listens on this one."""
    return _FROM_HERE.get(host, host)


def address(host: str, port: int) -> str:
    """Write the base of every URL, ``http://host:port``, with the brackets that an IPv6 address needs."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
