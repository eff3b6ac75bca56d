"""A whole HTTP response as a value."""

from __future__ import annotations

from typing import Protocol

import msgspec

Headers = tuple[tuple[str, str], ...]

JSON = "application/json"


class OpenFile(Protocol):
    """A file that can be sent: several parts of one response may share it."""

    def fileno(self) -> int:
        """The descriptor."""
        ...

    def sent(self, count: int) -> None:
        """Told after so many bytes of it were sent."""
        ...

    def overdue(self, still_s: float) -> bool:
        """Whether to give up on a reader who has taken nothing for so many seconds."""
        ...

    def close(self) -> None:
        """Let go of it; called once per part."""
        ...


class FilePart(msgspec.Struct, frozen=True):
    """A piece of a file."""

    file: OpenFile
    offset: int
    length: int
    """Bytes."""


class Response(msgspec.Struct, frozen=True):
    """What goes back on a connection: a body in memory, or parts, some of which are files."""

    status: int
    body: bytes = b""
    headers: Headers = ()
    content_type: str = JSON
    parts: tuple[bytes | FilePart, ...] = ()
    """Sent instead of ``body`` where there are any."""

    @property
    def length(self) -> int:
        """Bytes of the body."""
        if not self.parts:
            return len(self.body)
        return sum(part.length if isinstance(part, FilePart) else len(part) for part in self.parts)

    def close(self) -> None:
        """Let go of the files of a response that is not sent."""
        for part in self.parts:
            if isinstance(part, FilePart):
                part.file.close()
