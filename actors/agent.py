"""An agent: the actor of one session, alive while a turn of it goes on.

A thin shell around its ``Conversation``, which the keeper of all sessions begins with and gets back when it is at rest.
So an idle session costs no thread, and neither does a turn that is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, assert_never

import msgspec

from a2mcp.errors import A2mcpError
from a2mcp.inference.conversation import Conversation
from a2mcp.inference.questions import Question
from a2mcp.inference.runner import Ended, Item, Step, Told, Waiter
from a2mcp.tools.context import Ticket
from a2mcp.tools.result import text
from actors.kit import Actor
from actors.ref import Mailbox, Message

if TYPE_CHECKING:
    from collections.abc import Callable


class Put(Message, frozen=True):
    """Put something to the model."""

    item: Item


class Ask(Message, frozen=True):
    """Ask the model something that it must answer."""

    question: Question


class Answer(Message, frozen=True):
    """The model's answer to a question."""

    ticket: Ticket
    question_id: str
    text: str


class Watch(Message, frozen=True):
    """Wait until the session is at rest."""

    waiter: Waiter


class Cancel(Message, frozen=True):
    """End the turn."""

    ticket: Ticket


class Notice(Message, frozen=True):
    """Let the model know something."""

    text: str
    wake: bool


class Interrupt(Message, frozen=True):
    """End the turn because the daemon stops."""

    why: str


class Stepped(Message, frozen=True):
    """What the turn has done."""

    step: Step


class TurnEnded(Message, frozen=True):
    """How the turn ended."""

    ended: Ended


class Tend(Message, frozen=True):
    """Look for calls that have waited long enough."""


Request = Put | Ask | Answer | Watch | Cancel | Notice | Interrupt
"""What others want of a session."""
Command = Request | Stepped | TurnEnded | Tend


def handle(conversation: Conversation, request: Request) -> None:
    """Do what is wanted; by whoever owns the conversation now. A call that it breaks for is answered so."""
    try:
        _handle(conversation, request)
    except A2mcpError as error:
        ticket = ticket_of(request)
        if ticket is not None:
            conversation.runner.answer((Told(ticket, text(str(error), is_error=True)),))


def ticket_of(request: Request) -> Ticket | None:
    """The call behind a request."""
    match request:
        case Put(item=Item(waiter=Waiter(ticket=ticket))) | Ask(question=Question(waiter=Waiter(ticket=ticket))):
            return ticket
        case Answer(ticket=ticket) | Watch(waiter=Waiter(ticket=ticket)) | Cancel(ticket=ticket):
            return ticket
    return None


def _handle(conversation: Conversation, request: Request) -> None:
    match request:
        case Put(item=item):
            conversation.put(item)
        case Ask(question=question):
            conversation.ask(question)
        case Answer(ticket=ticket, question_id=question_id, text=answer):
            conversation.answer(ticket, question_id, answer)
        case Watch(waiter=waiter):
            conversation.watch(waiter)
        case Cancel(ticket=ticket):
            conversation.cancel(ticket)
        case Notice(text=told, wake=wake):
            conversation.notice(told, wake=wake)
        case Interrupt(why=why):
            conversation.interrupt(why)
        case _:
            assert_never(request)


class LiveSession(msgspec.Struct):
    """What outlives the actor of a session."""

    conversation: Conversation
    mailbox: Mailbox
    sent: int = 0
    """Requests that were left in the mailbox; by whoever leaves them."""
    handled: int = 0
    """Those of them that were taken out; by the actor."""


class Agent(Actor[Command]):
    """Owns one session while a turn of it goes on.

    Args:
        mailbox: made by ``mailbox_for``.
        live: what outlives the actor.
        went_idle: is told how many requests were handled whenever nothing goes on; must not block.
    """

    MAILBOX: ClassVar[int] = 4096

    def __init__(self, mailbox: Mailbox, *, live: LiveSession, went_idle: Callable[[LiveSession, int], None]) -> None:
        super().__init__(mailbox)
        self._live = live
        self._went_idle = went_idle

    def receive(self, message: Command) -> None:
        """Have the conversation go on."""
        live = self._live
        match message:
            case Stepped(step=step):
                live.conversation.stepped(step)
            case TurnEnded(ended=ended):
                live.conversation.ended(ended)
            case Tend():
                live.conversation.tend()
            case _:
                live.handled += 1
                handle(live.conversation, message)
        if not live.conversation.running:
            self._went_idle(live, live.handled)
