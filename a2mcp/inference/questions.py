"""A question that an agent must answer, and how it is put to it: once, and once more when it forgets."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from a2mcp.inference.runner import Item, Line, Waiter
from a2mcp.inference.transcript import Kind

_ASKED: Final = """\
Question {id} from {by}: {text}

Whoever asked waits. Answer with the tool agent_answer and the id {id}; then go on with what you were doing.\
"""
_FORGOTTEN: Final = """\
Question {id} has no answer yet, and whoever asked still waits: {text}

Answer it now, with the tool agent_answer and the id {id}. If you cannot know, say so in the answer.\
"""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question that is open."""

    id: str
    text: str
    by: str | None
    waiter: Waiter | None
    reminded: bool = False

    def again(self) -> Question:
        """The same, asked for the last time."""
        return replace(self, reminded=True)

    def unwatched(self) -> Question:
        """The same, for whose answer nobody waits any more."""
        return replace(self, waiter=None)

    @property
    def item(self) -> Item:
        """What the model reads, and what the transcript shows."""
        words = (_FORGOTTEN if self.reminded else _ASKED).format(id=self.id, by=self.by or "a caller", text=self.text)
        kind = Kind.NOTICE if self.reminded else Kind.QUESTION
        text = f"Question {self.id} has no answer yet." if self.reminded else self.text
        return Item(line=Line(kind=kind, text=text, by=self.by, id=self.id), words=words)
