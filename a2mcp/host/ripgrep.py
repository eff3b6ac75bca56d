"""Ripgrep: where it is, and how what we want is said to it.

Owns the flags. Does not run anything: ``search.py`` does that. Patterns and paths are never read as options: a pattern
is the value of ``--regexp=``, and every path is ``./`` or ``./name`` in a folder that is the working directory.
"""

from __future__ import annotations

import functools
import shutil
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2mcp.host.search_query import Files, Lines, Tree


@functools.cache
def find() -> str | None:
    """Return the path of ``rg``: the system's, else the one that came with our environment, else ``None``."""
    ours = Path(sysconfig.get_path("scripts"), "rg")
    return shutil.which("rg") or (str(ours) if ours.is_file() else None)


def lines_argv(rg: str, query: Lines, *, names: list[str], lookaround: bool) -> list[str]:
    """Write the command that prints matching lines as JSON messages.

    Args:
        rg: the program.
        query: what to search for.
        names: globs over file names that sieve coarsely; none means all.
        lookaround: use PCRE2, which has look-around and back-references.
    """
    switches = {
        "--pcre2": lookaround,
        "--fixed-strings": query.literal,
        "--ignore-case": not query.case,
        # NOTE: with several threads a file's matches are held until the file is done, hence a bound per file.
        f"--max-count={query.limit + 1}": True,
        f"--context={query.context}": query.context > 0,
        # A mapped file would count against the child's memory limit.
        "--no-mmap": True,
        # "$" also stands before the carriage return of a Windows line.
        "--crlf": True,
        f"--regexp={query.pattern}": True,
    }
    return [rg, "--json", *_walk_flags(query.tree, names), *_on(switches), "--", f"./{query.tree.name}"]


def files_argv(rg: str, query: Files, *, names: list[str]) -> list[str]:
    """Write the command that prints the names of files, each ended by NUL."""
    return [rg, "--files", "--null", *_walk_flags(query.tree, names), "--", "./"]


def _walk_flags(tree: Tree, names: list[str]) -> list[str]:
    switches = {
        "--no-config": True,
        "--hidden": tree.hidden,
        "--no-ignore": not tree.gitignore,
        # Only what git itself would go by, so that the argument's name is the truth.
        "--no-ignore-dot": True,
        "--no-ignore-global": True,
        # Without a repository .gitignore is obeyed all the same. NOTE: ripgrep then no longer sees where one ends.
        "--no-require-git": not tree.in_repository,
        # Outside of a repository nothing says where to stop: a stray ~/.gitignore of "*" would hide everything.
        "--no-ignore-parent": not tree.in_repository,
        "--glob=!.git": tree.gitignore,
    }
    # A type and not --glob: a file that a --glob asks for is shown even if it is ignored.
    sieve = [f"--type-add=wanted:{name}" for name in names]
    return [*_on(switches), *sieve, *(["--type=wanted"] if sieve else [])]


def _on(switches: dict[str, bool]) -> list[str]:
    return [flag for flag, on in switches.items() if on]
