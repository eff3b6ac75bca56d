"""What is in a folder of the share: names, kinds, sizes and times, and nothing that could not be opened through it."""

from __future__ import annotations

import os
import re
import stat
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp.xfer.conditions import LATEST_S
from a2mcp.xfer.target import is_temporary

if TYPE_CHECKING:
    from a2mcp.xfer.root import Parts, Root

ENTRIES: Final = 20_000
"""Shown of one folder with their sizes and times."""
CHILDREN: Final = 1000
"""Counted of a folder within it."""

_DIGITS: Final = re.compile(r"([0-9]+)")


class Entry(msgspec.Struct, frozen=True):
    """One thing in a folder."""

    path_type: str
    """``Dir``, ``File``, ``SymlinkDir`` or ``SymlinkFile``."""
    name: str
    mtime: int
    """Milliseconds since 1970."""
    size: int
    """Bytes; of a folder how many things are in it, at most ``CHILDREN``."""

    @property
    def is_folder(self) -> bool:
        """Whether it can be listed in turn."""
        return self.path_type.endswith("Dir")


class Listing(msgspec.Struct, frozen=True):
    """A folder."""

    entries: tuple[Entry, ...] = ()
    cut: bool = False
    """Whether there is more than ``ENTRIES``."""


def read(root: Root, parts: Parts, *, count: bool = True) -> Listing:
    """List a folder, unsorted.

    Args:
        root: what it is in.
        parts: where.
        count: look into the folders in it.

    Raises:
        OSError: it cannot be read.
    """
    folder = root.open_folder(parts)
    try:
        with os.scandir(folder) as found:
            named = [item for item in islice(found, ENTRIES + 1) if not is_temporary(item.name)]
            entries = [entry for item in named[:ENTRIES] if (entry := _entry(root, parts, item, count=count))]
    finally:
        os.close(folder)
    return Listing(tuple(entries), cut=len(named) > ENTRIES)


def names(root: Root, parts: Parts) -> list[str]:
    """Name everything in a folder, sorted; folders end in a slash.

    Raises:
        OSError: it cannot be read.
    """
    folder = root.open_folder(parts)
    try:
        with os.scandir(folder) as found:
            return sorted(name for item in found if (name := _line(root, parts, item)) is not None)
    finally:
        os.close(folder)


def _line(root: Root, parts: Parts, item: os.DirEntry[str]) -> str | None:
    """The line of one name; None for what a listing does not show. Only links are looked at."""
    if is_temporary(item.name):
        return None
    if item.is_symlink():
        entry = _entry(root, parts, item, count=False)
        return None if entry is None else item.name + "/" * entry.is_folder
    if item.is_dir(follow_symlinks=False):
        return item.name + "/"
    return item.name if item.is_file(follow_symlinks=False) else None


def entry_of(name: str, found: os.stat_result) -> Entry | None:
    """Describe one thing that was looked at by itself."""
    return _described(name, found, prefix="")


def ordered(listing: Listing, by: str, *, descending: bool) -> Listing:
    """Sort a listing by ``name``, ``mtime`` or ``size``; folders stay first."""
    keys = {
        "mtime": lambda entry: (entry.mtime, natural(entry.name)),
        "size": lambda entry: (entry.size, natural(entry.name)),
    }
    found = sorted(listing.entries, key=keys.get(by, lambda entry: natural(entry.name)), reverse=descending)
    found.sort(key=lambda entry: not entry.is_folder)
    return Listing(tuple(found), listing.cut)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Order a name as a person would: ``a2`` before ``a10``, ``B`` after ``a``."""
    pieces = _DIGITS.split(name.casefold())
    return tuple((0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in pieces if piece)


def _entry(root: Root, parts: Parts, item: os.DirEntry[str], *, count: bool) -> Entry | None:
    """Describe what a name stands for; None for what is gone, leads out, or is neither a file nor a folder."""
    inner = (*parts, item.name)
    try:
        link = item.is_symlink()
        found = root.status(inner) if link else item.stat(follow_symlinks=False)
    except OSError:
        return None
    described = _described(item.name, found, prefix="Symlink" if link else "")
    if described is None or not described.is_folder or not count:
        return described
    return msgspec.structs.replace(described, size=_children(root, inner))


def _described(name: str, found: os.stat_result, *, prefix: str) -> Entry | None:
    mtime = min(found.st_mtime_ns // 1_000_000, LATEST_S * 1000)
    if stat.S_ISDIR(found.st_mode):
        return Entry(f"{prefix}Dir", name, mtime, 0)
    if stat.S_ISREG(found.st_mode):
        return Entry(f"{prefix}File", name, mtime, found.st_size)
    return None


def _children(root: Root, parts: Parts) -> int:
    try:
        folder = root.open_folder(parts)
    except OSError:
        return 0
    try:
        with os.scandir(folder) as found:
            return sum(1 for _ in islice(found, CHILDREN))
    except OSError:
        return 0
    finally:
        os.close(folder)
