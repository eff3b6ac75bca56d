"""Where a large body goes while it comes in: straight to its place, instead of through a temporary file.

The app that takes uploads offers a sink for a request as soon as its head has been let in. The shape is Waitress's own
for buffers, because Waitress's receivers fill it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from a2mcp.errors import RequestError
    from a2mcp.http.guard import Head


class Sink(Protocol):
    """Takes one body. Called in the loop, so it waits for no disk: it says when it is full."""

    @property
    def fault(self) -> RequestError | None:
        """What went wrong; the request is refused with it and no more is read."""
        ...

    @property
    def full(self) -> bool:
        """Whether to read no more for now."""
        ...

    def when_room(self, tell: Callable[[], None]) -> None:
        """Have it told, from any thread, when it is no longer full; at once if it is not."""
        ...

    def overdue(self, still_s: float) -> bool:
        """Whether to give up on a body of which nothing has come for so many seconds."""
        ...

    def append(self, data: bytes) -> None:
        """Take the next bytes."""
        ...

    def __len__(self) -> int:
        """How many there are."""
        ...

    def getfile(self) -> Any:
        """The sink itself, to the app as ``wsgi.input``."""
        ...

    def close(self) -> None:
        """Throw away what was not kept; called when the request is over, however it ended."""
        ...


Sinks = Callable[["Head"], "Sink | None"]
"""Offers a sink, or None for a body that is read into memory; raises ``RequestError`` to refuse the request."""


def no_sinks(_head: Head) -> None:
    """Read every body into memory."""
