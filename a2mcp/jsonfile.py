"""JSON files of ours, read back: into a type, at most so large, and whatever somebody has put there instead.

Knows neither what the files are for nor how they are written (``files.write_atomic``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from a2mcp.files import read_bounded

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")


def read(path: Path, limit: int, kind: type[T]) -> T:
    """Read a file of at most ``limit`` bytes into a type.

    Raises:
        OSError: it cannot be read, is too large, or is no regular file.
        ValueError: it holds something else.
    """
    data = read_bounded(path, limit)
    try:
        return msgspec.json.decode(data, type=kind)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
