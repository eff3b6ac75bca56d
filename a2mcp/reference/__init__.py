"""The generated part of ``docs/reference``: pages that are written from what the code itself says.

``tools`` reads the registry's specs, ``settings`` the schema of ``a2mcp.json``, ``cli`` the verbs, ``errors`` the one
tree of errors; ``markdown`` writes tables. Run by ``make docs`` and by the tests, and never imported by the daemon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2mcp.reference import cli, errors, settings, tools

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PAGES: Final[dict[str, Callable[[], str]]] = {
    "tools.md": tools.page,
    "settings.md": settings.page,
    "cli.md": cli.page,
    "errors.md": errors.page,
}


def write(folder: Path) -> list[Path]:
    """Write every page that is not as it should be; the pages that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    changed = stale(folder)
    for path in changed:
        path.write_text(_PAGES[path.name](), encoding="utf-8")
    return changed


def stale(folder: Path) -> list[Path]:
    """Find the pages in the folder that are missing or no longer say what the code says."""
    paths = [folder / name for name in _PAGES]
    return [path for path in paths if not path.is_file() or path.read_text("utf-8") != _PAGES[path.name]()]
