"""Puts the program together: the command line, and the daemon that ``a2mcp serve`` runs.

Read on in ``actors/__init__.py`` (who lives), ``actors/system.py`` (how they start) and ``a2mcp/http/app.py`` (the
routes).
"""

from __future__ import annotations

import contextlib
import gc
import sys
from typing import TYPE_CHECKING

from a2mcp.errors import SystemRefused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from a2mcp.config.paths import Home
    from a2mcp.library.shelf import Shelf
    from a2mcp.tools.registry import Host


def main() -> None:
    """Run the command line. What the system refuses on the way is told in a sentence, whatever it was needed for."""
    try:
        from a2mcp.cli.main import cli  # noqa: PLC0415  # The daemon of the benchmarks needs no command line.

        cli(prog_name="a2mcp", obj={"serve": serve})
    except (OSError, ImportError, MemoryError) as cause:
        refused = SystemRefused(cause)
        # In the words of ``cli``, which perhaps could not be loaded.
        sys.exit(f"a2mcp: {refused.text}\n       {refused.hint}")


def serve(home: Home, hosts: Sequence[Host] = (), shelves: Sequence[Shelf] = ()) -> int:
    """Run a daemon in the foreground until it is told to stop.

    Args:
        home: where its files are.
        hosts: more tools behind the same registry, beside the ones of this machine.
        shelves: more resources and prompts, beside the product's own.

    Returns:
        The exit code.

    Raises:
        A2mcpError: it could not start; the error says why and carries the exit code.
    """
    # PERF: starting makes little but what stays; looking for what does not takes a tenth of the time. ``run`` turns the
    # collector on again.
    gc.disable()
    with _unsaid():
        from actors.daemon import Daemon, More  # noqa: PLC0415  # 90 ms of imports that no other verb needs.

    return Daemon.start(home, More(tuple(hosts), tuple(shelves))).run()


@contextlib.contextmanager
def _unsaid() -> Iterator[None]:
    """Keep quiet what modules log while they are loaded: ``hashlib`` logs a traceback of a part that cannot be."""
    import logging  # noqa: PLC0415  # Most verbs need none of it.

    quiet = logging.NullHandler()
    logging.getLogger().addHandler(quiet)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(quiet)


if __name__ == "__main__":
    main()
