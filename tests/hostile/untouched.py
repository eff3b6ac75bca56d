"""What of a daemon a request could have changed: its records, what it knows and its files, as one comparable value."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from watchers import operator

if TYPE_CHECKING:
    from pathlib import Path

    from harness import Daemon

KEPT = ("a2mcp.json", "grants.json", "endpoint.json", "installs.json", "models.yml")


def of(daemon: Daemon, *folders: Path) -> dict[str, Any]:
    """Everything that must stay as it is when nobody has the token.

    Args:
        daemon: what is asked, over the operator's channel.
        folders: what callers can write to; every file in them counts.
    """
    said = {
        path: operator(daemon, "GET", path)[1] for path in ("/approvals", "/grants", "/calls", "/jobs", "/host-llm")
    }
    share = operator(daemon, "GET", "/share")[1]
    newest = operator(daemon, "GET", "/events?limit=1")[1]
    return said | {
        "audit": daemon.audit(),
        "sessions": {session["id"] for session in operator(daemon, "GET", "/sessions")[1]},
        "share": share and {name: value for name, value in share.items() if name != "left_s"},
        "tunnel": operator(daemon, "GET", "/tunnel")[1]["state"],
        "token": operator(daemon, "GET", "/token")[1],
        "newest event": newest[-1]["sequence"] if newest else 0,
        "kept": {name: _content(daemon.home / name) for name in KEPT},
        "files": {str(file): _content(file) for folder in folders for file in sorted(folder.rglob("*"))},
    }


def _content(file: Path) -> str | None:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
