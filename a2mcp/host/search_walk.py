"""Walking a tree the way ripgrep does, for the built-in searcher: no links, no ``.git``, what git ignores left out.

Owns the walk and the meaning of ``.gitignore``. Works below the working directory of its process.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pathspec import GitIgnoreSpec

    from a2mcp.host.search_query import Tree


class _Rules(msgspec.Struct, frozen=True):
    """One ``.gitignore``: what it says about paths below its folder."""

    folder: str
    spec: GitIgnoreSpec

    def verdict(self, path: str) -> bool | None:
        """Say whether an absolute path is ignored, or ``None`` if no line of the file is about it."""
        return self.spec.check_file(path.removeprefix(self.folder)).include


def walk(tree: Tree) -> Iterator[str]:
    """Yield the files below the working directory, as ``a/b.py``. Links are not followed, so there are no loops."""
    top = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118 - text, because pathlib is slow per file
    waiting = [("", _rules_above(tree) if tree.gitignore else ())]
    while waiting:
        folder, rules = waiting.pop()
        entries = _entries(folder)
        if tree.gitignore and any(entry.name == ".gitignore" for entry in entries):
            rules = (*rules, *_rules_in(top + folder))
        for entry in entries:
            below = entry.is_dir(follow_symlinks=False)
            path = folder + entry.name + "/" * below
            if _left_out(entry.name, tree) or _ignored(top + path, rules):
                continue
            if below:
                waiting.append((path, rules))
            elif entry.is_file(follow_symlinks=False):
                yield path


def complain(path: str, error: OSError | str) -> None:
    """Say on stderr, as ripgrep does, that a path could not be looked at."""
    reason = error if isinstance(error, str) else error.strerror or str(error)
    sys.stderr.buffer.write(os.fsencode(f"./{path}: {reason}\n"))
    sys.stderr.flush()


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder or ".") as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        complain(folder, error)
        return []


def _left_out(name: str, tree: Tree) -> bool:
    return name.startswith(".") and (not tree.hidden or (tree.gitignore and name == ".git"))


def _ignored(path: str, rules: Sequence[_Rules]) -> bool:
    """Ask the nearest rules first: git lets them overrule those further up."""
    verdicts = (each.verdict(path) for each in reversed(rules))
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _rules_above(tree: Tree) -> tuple[_Rules, ...]:
    """Read the rules between the top of the repository and the working directory; outside of one there are none."""
    here = Path.cwd()
    if not tree.in_repository or (here / ".git").exists():
        return ()
    found: list[_Rules] = []
    for folder in here.parents:
        found[:0] = _rules_in(os.path.join(folder, ""))  # noqa: PTH118 - text, see walk
        if (folder / ".git").exists():
            break
    return tuple(found)


def _rules_in(folder: str) -> tuple[_Rules, ...]:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - heavy, and not needed for most trees

    if not os.path.isfile(f"{folder}.gitignore"):  # noqa: PTH113 - text, see walk
        return ()
    try:
        lines = Path(folder, ".gitignore").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        return (_Rules(folder, GitIgnoreSpec.from_lines(lines)),)
    except (OSError, ValueError) as error:
        complain(f"{folder}.gitignore", str(error))
        return ()
