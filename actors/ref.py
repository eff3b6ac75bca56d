"""How anybody speaks to an actor: a ``Ref`` is the actor's mailbox under its name.

A ref stays good across restarts, because the mailbox outlives the actor that reads it (see ``supervisor.py``). With
``kit.py`` the only file that knows Pykka.
"""

from __future__ import annotations

import contextlib
import os
import queue
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec
import pykka

from a2mcp.errors import Busy

if TYPE_CHECKING:
    from a2mcp.errors import A2mcpError

R = TypeVar("R")
M = TypeVar("M", bound="Message")


class Message(msgspec.Struct, frozen=True):
    """The base of everything told to an actor."""

    def failed(self, error: A2mcpError) -> None:
        """Answer whoever waits for this message, after its handler broke. Nobody waits for most messages."""


class Ask(Message, Generic[R], frozen=True):
    """A message with an answer. For the operator and for tests: nothing on the path of a call waits for an answer."""


class Ping(Ask[None], frozen=True):
    """Answered by every actor as soon as it reads its mailbox."""


class Question(msgspec.Struct, frozen=True):
    """An ``Ask`` in the mailbox, with the place for its answer."""

    message: Ask[Any]
    answer: pykka.Future[Any]


class Mailbox:
    """The messages that wait for one actor; refuses, and never blocks, when ``limit`` of them wait.

    The size check is soft: senders racing each other may overshoot by a few, which no bound here minds.
    """

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._returned: deque[Any] = deque()

    def offer(self, item: object) -> None:
        """Add a message of ours.

        Raises:
            Busy: as many as ``limit`` wait already.
        """
        if self._queue.qsize() >= self.limit:
            raise Busy(f"{self.name} is busy.", hint="Try again in a moment.")
        self.put(item)

    def put(self, item: object, /) -> None:
        """Add an item whatever waits. Pykka's stop message comes this way, so a full mailbox still stops."""
        self._queue.put(item)

    def get(self, timeout: float | None = None) -> Any:
        """Wait for the next item; where there is a ``timeout``, raise ``queue.Empty`` after so many seconds."""
        if self._returned:
            return self._returned.popleft()
        return self._queue.get(timeout=timeout)

    def get_nowait(self) -> Any:
        """Take the next item, or raise ``queue.Empty``."""
        if self._returned:
            return self._returned.popleft()
        return self._queue.get_nowait()

    def give_back(self, items: list[Any]) -> None:
        """Put back what a dying actor had taken but not handled; read first by its replacement."""
        self._returned.extend(items)

    def depth(self) -> int:
        """How many items wait."""
        return self._queue.qsize() + len(self._returned)

    def empty(self) -> bool:
        """Whether nothing waits."""
        return self.depth() == 0


class WakeableMailbox(Mailbox):
    """A mailbox with a descriptor that is readable while something waits, for an actor that lives in a selector."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(name, limit)
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """The descriptor to select on."""
        return self._reader

    def put(self, item: object, /) -> None:
        """Add an item and make the descriptor readable."""
        super().put(item)
        # A pipe full of wake-ups takes no more: one is enough.
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"\0")

    def drain(self) -> list[Any]:
        """Take all that waits, without waiting, and make the descriptor quiet."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 65536)
        items: list[Any] = []
        while True:
            try:
                items.append(self.get_nowait())
            except queue.Empty:
                return items


class Ref(Generic[M]):
    """The way to one actor. ``M`` is the union of the messages it takes."""

    __slots__ = ("mailbox", "name")

    def __init__(self, mailbox: Mailbox) -> None:
        self.name = mailbox.name
        self.mailbox = mailbox

    def tell(self, message: M) -> None:
        """Leave a message and go on.

        Raises:
            Busy: the mailbox is full.
        """
        self.mailbox.offer(message)

    def insist(self, message: M) -> None:
        """Leave a message whatever waits: for what was let in already and must come to its end."""
        self.mailbox.put(message)

    def ask(self, message: Ask[R], *, timeout: float) -> R:
        """Leave a message and wait for its answer.

        Raises:
            Busy: the mailbox is full.
            pykka.Timeout: no answer within ``timeout`` seconds; the message may still be handled.
        """
        answer: pykka.Future[Any] = pykka.ThreadingFuture()
        self.mailbox.offer(Question(message, answer))
        return cast("R", answer.get(timeout=timeout))

    def settle(self, *, timeout: float) -> None:
        """Wait until what was told so far is handled: at most ``timeout`` seconds, and not for a full mailbox."""
        with contextlib.suppress(Busy, pykka.Timeout):
            self.ask(Ping(), timeout=timeout)
