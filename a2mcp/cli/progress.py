"""How far a download is, drawn for a person; silent for everybody else."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from types import TracebackType

    from a2mcp.obtain.programs import ProgramFacts

LOOK_S: Final = 0.1
"""Between two looks at the daemon."""


class Watch:
    """Paces whoever watches, and draws a bar on a terminal once there is something to draw."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, facts: ProgramFacts | None) -> None:
        """Draw how far it is, and wait a moment."""
        if facts is not None and sys.stderr.isatty():
            if self._bar is None:
                self._begin(facts.name)
            self._bar.update(self._task, completed=facts.bytes, total=facts.total)
        time.sleep(LOOK_S)

    def _begin(self, name: str) -> None:
        from rich import progress  # noqa: PLC0415 - 60 ms that only a bar is worth
        from rich.console import Console  # noqa: PLC0415 - as above

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.DownloadColumn(),
            progress.TransferSpeedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(f"fetching {name}", total=None)
        self._bar.start()
