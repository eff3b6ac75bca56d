"""Promise P7 in every test that starts a daemon: its token stands in no reply, file, argument list or environment."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Collection

KEEPERS = frozenset({"a2mcp.json", "endpoint.json", "stdout", "stderr"})
"""The files of a home that may hold the token: whose purpose it is, and those with what a caller's command has printed."""
SHORTEST = 20
"""Characters of a token that cannot stand somewhere by chance."""
_PIECE = 1 << 20


def require_unsaid(data: bytes, token: str | None) -> None:
    """Fail if a reply holds the token."""
    assert not _holds(data, (token or "",)), "a reply holds the token"


def require_unwritten(home: Path, tokens: Collection[str]) -> None:
    """Fail if a file of a home holds one of its tokens, but for those that must."""
    for path in home.rglob("*"):
        if path.name not in KEEPERS and path.is_file() and not path.is_symlink():
            with contextlib.suppress(OSError), path.open("rb") as file:
                before = b""
                while piece := file.read(_PIECE):
                    assert not _holds(before + piece, tokens), f"{path.relative_to(home)} holds the token"
                    before = piece[-256:]


def require_uninherited(pid: int, tokens: Collection[str]) -> None:
    """Fail if a process, or one that it started, has a token among its arguments or in its environment."""
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            for what in ("cmdline", "environ"):
                with contextlib.suppress(OSError):
                    data = Path(f"/proc/{process.pid}/{what}").read_bytes()
                    assert not _holds(data, tokens), f"the token is in {what} of {data[:200]!r}"


def _holds(data: bytes, tokens: Collection[str]) -> bool:
    return any(len(token) >= SHORTEST and token.encode() in data for token in tokens)
