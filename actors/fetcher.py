"""The fetcher: finds or fetches one program of others at a time, and then tells whoever asked.

A download may take minutes, so this actor waits where no other may; nobody waits for it, and how far it is can be read
from the programs themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from a2mcp.errors import A2mcpError, CannotObtain
from a2mcp.obtain.programs import Found, Programs, described
from actors import audit
from actors.kit import Actor
from actors.ref import Mailbox, Message, Ref

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2mcp.types import JsonObject


class Fetch(Message, frozen=True):
    """Obtain a program, then tell ``then`` the message made of what came of it."""

    program: str
    then: Ref[Any] | None
    message: Callable[[Found | A2mcpError], Message] | None

    def failed(self, error: A2mcpError) -> None:
        """Tell it all the same."""
        if self.then is not None and self.message is not None:
            self.then.insist(self.message(error))


class Fetcher(Actor[Fetch]):
    """Owns the programs."""

    MAILBOX: ClassVar[int] = 64

    def __init__(self, mailbox: Mailbox, *, programs: Programs, audit_writer: Ref[audit.Command]) -> None:
        super().__init__(mailbox)
        self._programs = programs
        self._audit = audit_writer

    def receive(self, message: Fetch) -> None:
        """Obtain the program; an install is on record before anybody can run it."""
        outcome: Found | A2mcpError
        try:
            outcome = self._programs.obtain(message.program)
        except A2mcpError as error:
            outcome = error
        following = message.message(outcome) if message.message is not None else None
        args = _record_of(outcome)
        if args is not None:
            audit.record(self._audit, "xfer", None, args, then=message.then, message=following)
        elif message.then is not None and following is not None:
            message.then.insist(following)


def _record_of(outcome: Found | A2mcpError) -> JsonObject | None:
    """What the log says of an install, done or failed; None when nothing was to be fetched."""
    if isinstance(outcome, CannotObtain) and outcome.data is not None:
        return {"action": "install", **outcome.data, "error": outcome.text}
    if isinstance(outcome, Found) and outcome.pin is not None:
        return {"action": "install", **described(outcome.pin), "path": str(outcome.path)}
    return None


def fetch(
    fetcher: Ref[Fetch],
    program: str,
    *,
    then: Ref[Any] | None = None,
    message: Callable[[Found | A2mcpError], Message] | None = None,
) -> None:
    """Have a program obtained, and ``then`` told the message made of what came of it.

    Raises:
        Busy: too many wait already.
    """
    fetcher.tell(Fetch(program, then, message))
