"""Whether a process runs, whoever started it."""

from __future__ import annotations

from pathlib import Path


def alive(pid: int | str) -> bool:
    """Whether there is such a process and it has not ended; one that is only waited for has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
