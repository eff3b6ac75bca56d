"""What passes between a session, its turns, and who waits for it: values, and what takes the turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from a2mcp.inference.ledger import Spent
from a2mcp.inference.transcript import Kind, Outcome
from a2mcp.tools.context import SILENT, Teller, Ticket
from a2mcp.tools.result import Result

if TYPE_CHECKING:
    from a2mcp.inference.transcripts import Happened


class Waiter(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for something of a session."""

    ticket: Ticket
    until: float
    """When it is told how things stand instead; in the time that never jumps."""
    tell: Teller = SILENT


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a transcript that has no number yet."""

    kind: Kind
    text: str
    by: str | None = None
    id: str | None = None
    is_error: bool = False


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """Something for the model to read, and the call that waits for the end of the turn that does."""

    line: Line
    words: str | None = None
    """What it reads, where that is more than the transcript shows."""
    waiter: Waiter | None = None

    @property
    def read(self) -> str:
        """What the model reads."""
        return self.line.text if self.words is None else self.words


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn has done since its last step."""

    lines: tuple[Line, ...] = ()
    messages: tuple[bytes, ...] = ()
    spent: Spent = Spent()


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended."""

    outcome: Outcome
    answer: str
    unread: tuple[Item, ...] = ()
    """What it was told and never read."""


class Handed(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool handed back to the model."""

    text: str
    images: tuple[tuple[bytes, str], ...] = ()
    """Each with its media type."""
    is_error: bool = False


class Told(msgspec.Struct, frozen=True):
    """A call that can be answered."""

    ticket: Ticket
    result: Result


class Runner(Protocol):
    """Takes the turns of one session, and keeps and answers what comes of them. Nothing here blocks."""

    def admit(self) -> None:
        """Let a turn begin.

        Raises:
            A2mcpError: no model may be asked now; the text says why.
        """
        ...

    def begin(self, prompt: str) -> None:
        """Have a model asked; the session is told each step, and the end."""
        ...

    def tell(self, item: Item) -> None:
        """Let the running turn read something before its next request."""
        ...

    def stop(self) -> None:
        """Begin to end the running turn."""
        ...

    def keep(self, happened: Happened) -> None:
        """Keep what happened."""
        ...

    def answer(self, told: tuple[Told, ...]) -> None:
        """Answer these calls, behind what was kept before."""
        ...
