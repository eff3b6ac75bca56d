"""What can be asked of the searchers, and what comes back. Values only; ``search.py`` finds the answers."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the file system to walk."""

    folder: Path
    """An existing folder, absolute."""
    name: str = ""
    """One file in it; empty for the whole folder."""
    hidden: bool = True
    gitignore: bool = True

    @property
    def in_repository(self) -> bool:
        """True if the folder, or one above it, is a git repository's."""
        return any((folder / ".git").exists() for folder in (self.folder, *self.folder.parents))


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines of which files."""

    tree: Tree
    pattern: str
    glob: str = ""
    """Which files to look into; empty for all."""
    literal: bool = False
    case: bool = True
    context: int = 0
    limit: int = 100
    room: int = 50 * 1024
    """Bytes of lines to bring at most."""


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """Which files."""

    tree: Tree
    pattern: str
    anchored: bool = False
    """The pattern is about the whole path even if it has no slash."""
    limit: int = 200


class Line(msgspec.Struct, frozen=True):
    """One line, clipped to what is worth showing."""

    path: str
    """Relative to the folder of the tree; bytes that are not UTF-8 as surrogates."""
    number: int
    column: int | None
    """Where the first hit begins, in characters from 1; ``None`` for a line of context."""
    text: str


class FoundLines(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to ``Lines``, by path and number."""

    lines: tuple[Line, ...]
    truncated: bool
    """There are more hits than were asked for, or than there is room for."""
    searched: int | None
    """Files that were looked into, if the search came to its end and they were counted."""
    notes: tuple[str, ...]
    """What kept the answer from being whole."""


class FoundFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to ``Files``, newest first."""

    paths: tuple[str, ...]
    total: int
    notes: tuple[str, ...]
