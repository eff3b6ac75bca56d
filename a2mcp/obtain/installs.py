"""The record of what we put on this machine: which file, from where, with which hash.

A file is ours only when it is in the record and still has the recorded hash. Everything else in the way is somebody
else's and stays.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from a2mcp import jsonfile
from a2mcp.errors import UnusableFile
from a2mcp.files import open_regular, write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST_FILE: Final = 1 << 20
_PIECE: Final = 1 << 20


class Install(msgspec.Struct, frozen=True, kw_only=True):
    """One program that we fetched."""

    name: str
    version: str
    path: str
    sha256: str
    """Of the program as it lies there, not of the archive it came in."""
    url: str
    installed_at: str


def read(file: Path) -> dict[str, Install]:
    """Read the record, by program; empty when there is none.

    Raises:
        UnusableFile: it cannot be read. It is not guessed at: it says which files may be replaced.
    """
    try:
        found = jsonfile.read(file, LARGEST_FILE, list[Install])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UnusableFile(f"{file} cannot be read: {error}.", hint="Repair or remove it.") from error
    return {one.name: one for one in found}


def write(file: Path, installs: Mapping[str, Install]) -> None:
    """Replace the record.

    Raises:
        OSError: it is as it was.
    """
    write_atomic(file, msgspec.json.format(msgspec.json.encode(list(installs.values()))) + b"\n", mode=0o600)


def hash_of(path: Path) -> str | None:
    """Hash a regular file; None when there is nothing under that name.

    Raises:
        OSError: there is something, and it cannot be read.
    """
    try:
        descriptor, _ = open_regular(path)
    except FileNotFoundError:
        return None
    digest = hashlib.sha256()
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123  # A descriptor, not a path.
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def intact(install: Install) -> bool:
    """Whether the file is still what we put there."""
    try:
        return hash_of(Path(install.path)) == install.sha256
    except OSError:
        return False
