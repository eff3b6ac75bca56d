"""Files that somebody else is appending to while a test reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def whole_lines(path: Path) -> list[bytes]:
    """The lines that end with a break, none where there is no file; a write over two pages can be seen when half of it is there."""
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1].splitlines()
