"""What every actor here is made of: a thread, a bounded mailbox, and a rim that nothing escapes.

Pykka gives the life cycle. What it does not give is added here, because each was measured to hurt: an exception under
``tell`` would kill the actor silently, a ``SystemExit`` in one actor would stop all of them, mailboxes would be
unbounded, and nobody would restart anything. With ``ref.py`` the only file that knows Pykka.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import pykka

from a2mcp.errors import A2mcpError, Internal
from actors.ref import Mailbox, Message, Ping, Question, Ref

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

M = TypeVar("M", bound=Message)

logger = logging.getLogger("a2mcp.actors")


class Actor(pykka.ThreadingActor, Generic[M]):
    """One thread that handles one message at a time.

    A handler that raises an ``Exception`` costs its own message only: whoever waits for that message is answered with
    the error, and the actor goes on with its state. Anything else (``SystemExit``, ``KeyboardInterrupt`` …) ends the
    actor too, and the supervisor starts a new one on the same mailbox.
    """

    use_daemon_thread = True

    MAILBOX: ClassVar[int]
    """How many messages may wait. There is no default: every buffer has a chosen size."""

    BATCH: ClassVar[int] = 1
    """How many messages ``take`` returns at most."""

    def __init__(self, mailbox: Mailbox) -> None:
        super().__init__()
        self.mailbox = mailbox
        # Pykka made an inbox and a ref to it; ours replaces both, so that Pykka's stop arrives in it too.
        self.actor_inbox = mailbox
        self._actor_ref = pykka.ActorRef(self)
        self._taken: list[Any] = []
        self.on_death: Callable[[BaseException], None] = lambda _cause: None

    @classmethod
    def mailbox_for(cls, name: str) -> Mailbox:
        """Make the mailbox that an actor of this class reads."""
        return Mailbox(name, cls.MAILBOX)

    def receive(self, message: M) -> object:
        """Handle one message; for an ``Ask``, return its answer."""
        raise NotImplementedError

    def take(self) -> Sequence[Any]:
        """Wait for messages and return up to ``BATCH`` of them."""
        return self.with_more([self.mailbox.get()])

    def with_more(self, batch: list[Any]) -> list[Any]:
        """Add what waits now, up to ``BATCH`` in all."""
        while len(batch) < self.BATCH:
            try:
                batch.append(self.mailbox.get_nowait())
            except queue.Empty:
                break
        return batch

    def handle(self, batch: Sequence[Any]) -> None:
        """Handle a batch, one by one. An actor that writes groups overrides this."""
        self._taken = list(batch)
        while self._taken:
            self.handle_one(self._taken.pop(0))

    def handle_one(self, item: Any) -> None:
        """The rim: handle one item, and complete what waits for it whatever happens."""
        try:
            if isinstance(item, Question):
                self._answer_question(item)
            elif isinstance(item, Message):
                self.receive(item)  # type: ignore[arg-type]  # A Ref only lets M in.
            else:
                self._handle_receive(item.message)
                if item.reply_to is not None:
                    item.reply_to.set(None)
        except BaseException as cause:  # noqa: BLE001  # The rim.
            self._fail(item, cause)
            if not isinstance(cause, Exception):
                self._die(cause)

    def _answer_question(self, question: Question) -> None:
        if isinstance(question.message, Ping):
            question.answer.set(None)
            return
        question.answer.set(self.receive(question.message))  # type: ignore[arg-type]  # As above.

    def _fail(self, item: Any, cause: BaseException) -> None:
        error = cause if isinstance(cause, A2mcpError) else Internal()
        if not isinstance(cause, A2mcpError):
            logger.error(
                "[a2mcp] internal error: %s could not handle %s", self.mailbox.name, type(item).__name__, exc_info=cause
            )
        try:
            if isinstance(item, Question):
                item.answer.set_exception((type(cause), cause, None))
            elif isinstance(item, Message):
                item.failed(error)
        except Exception:
            logger.exception("[a2mcp] internal error: %s could not fail a message", self.mailbox.name)

    def _die(self, cause: BaseException) -> None:
        self.mailbox.give_back(self._taken)
        self._taken = []
        pykka.ActorRegistry.unregister(self.actor_ref)
        self.actor_stopped.set()
        self.on_death(cause)

    # --- Pykka's hooks --------------------------------------------------------------------------------------------

    def _actor_loop_running(self) -> None:
        try:
            while not self.actor_stopped.is_set():
                self.handle(self.take())
        except BaseException as cause:  # What breaks outside a message: the loop of an actor that has one of its own.
            logger.exception("[a2mcp] internal error: %s broke between messages", self.mailbox.name)
            self._die(cause)

    def _actor_loop_teardown(self) -> None:
        """Leave the mailbox as it is: a replacement reads on, and at the end nobody does."""

    def _start_actor_loop(self) -> None:
        self.thread = threading.Thread(target=self._actor_loop, name=self.mailbox.name, daemon=True)
        self.thread.start()

    def alive(self) -> bool:
        """Whether the thread still reads the mailbox."""
        return self.thread.is_alive() and not self.actor_stopped.is_set()


def launch(actor: Actor[M]) -> Ref[M]:
    """Start an actor that was built with its mailbox.

    Pykka's ``start`` builds the actor itself; ours is built first, because its mailbox is older than it.

    Raises:
        RuntimeError: the machine has no thread left.
    """
    pykka.ActorRegistry.register(actor.actor_ref)
    try:
        actor._start_actor_loop()  # noqa: SLF001  # Pykka's own start does the same two steps.
    except RuntimeError:
        pykka.ActorRegistry.unregister(actor.actor_ref)
        raise
    return Ref(actor.mailbox)


def halt(actor: Actor[Any], *, timeout: float) -> bool:
    """Stop an actor after what its mailbox holds, and wait for its thread; whether it ended in time."""
    if actor.alive():
        actor.stop()
    if actor.thread.ident is not None:  # Else the machine had no thread for it.
        actor.thread.join(timeout)
    return not actor.thread.is_alive()
