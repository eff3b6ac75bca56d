"""What a folder holds, as lines of text: folders with a slash, links with their target, files with their size."""

from __future__ import annotations

import os
import stat
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp import files
from a2mcp.host.paths import as_url, show

if TYPE_CHECKING:
    from pathlib import Path

_NAMES: Final = 200_000


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the entries of a folder, sorted by name."""

    lines: list[str]
    first: int
    """Number of the first entry shown, from 1."""
    total: int
    complete: bool
    """False when the folder holds more names than are taken in; then ``total`` is how many were."""


def listing(folder: Path, first: int, limit: int) -> Listing:
    """List ``limit`` entries from the ``first`` on; a negative ``first`` counts from the end.

    Raises:
        OSError: the folder cannot be read.
    """
    with os.scandir(folder) as entries:
        names = [entry.name for entry in islice(entries, _NAMES + 1)]
    complete = len(names) <= _NAMES
    del names[_NAMES:]
    names.sort()
    start = max(0, len(names) + first) if first < 0 else first - 1
    return Listing(
        lines=[_line(folder, name) for name in names[start : start + limit]],
        first=start + 1,
        total=len(names),
        complete=complete,
    )


def _line(folder: Path, name: str) -> str:
    path = folder / name
    shown = show(name)
    address = f"  ({as_url(path)})" if shown != name else ""
    try:
        status = path.lstat()
    except OSError as error:
        return f"{shown}  ({error.strerror}){address}"
    return f"{shown}{_detail(path, status)}{address}"


def _detail(path: Path, status: os.stat_result) -> str:
    if stat.S_ISDIR(status.st_mode):
        return "/"
    if stat.S_ISLNK(status.st_mode):
        return f" -> {_target(path)}"
    if stat.S_ISREG(status.st_mode):
        return f"  {status.st_size} bytes"
    return f"  ({files.kind_of(status.st_mode)})"


def _target(path: Path) -> str:
    try:
        return show(path.readlink())
    except OSError as error:
        return f"({error.strerror})"
