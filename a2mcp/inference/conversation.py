"""One agent's session while something happens in it: its turn, what waits for the next one, and who waits for either.

Owns the order of prompts, questions and answers. Does not know how a turn is run or where anything is kept: both are
behind ``Runner``. Not thread-safe; one owner. A turn is given all that waits for it at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from a2mcp.clock import Clock, iso
from a2mcp.errors import A2mcpError, ToolError
from a2mcp.inference import replies
from a2mcp.inference.ledger import Spent
from a2mcp.inference.runner import Ended, Item, Line, Runner, Step, Told, Waiter
from a2mcp.inference.transcript import Entry, Kind, Outcome, Session, State
from a2mcp.inference.transcripts import Happened
from a2mcp.masking import mask

if TYPE_CHECKING:
    from a2mcp.inference.questions import Question
    from a2mcp.tools.context import Ticket

MOST_WOKEN: Final = 20
"""Turns in a row that begin by themselves: what they start may end, and wake the session again, without end."""
MOST_WAITING: Final = 100
"""Prompts that wait for the next turn."""
MOST_QUESTIONS: Final = 100
"""Questions that the agent has not answered yet."""
MOST_UNREAD: Final = 50
"""Things that the host has told and no turn has read; the oldest go."""
_NOTHING: Final = Spent()


class Conversation:
    """A session that is alive.

    Args:
        session: its facts.
        runner: takes its turns.
        clock: for the times of entries.
    """

    def __init__(self, session: Session, runner: Runner, clock: Clock) -> None:
        self.session = session
        self.runner = runner
        self._clock = clock
        self._inbox: list[Item] = []
        self._turn: list[Waiter] = []
        """Who waits for the end of the running turn."""
        self._idle: list[Waiter] = []
        """Who waits until nothing goes on."""
        self._cancelling: list[Ticket] = []
        self._questions: dict[str, Question] = {}
        self._awake = False
        """Whether what the host told it is worth a turn of its own."""
        self._cut: str | None = None
        """Why the running turn is ended from outside."""

    @property
    def running(self) -> bool:
        """Whether a turn goes on."""
        return self.session.state is State.RUNNING

    # --- what callers want ------------------------------------------------------------------------------------------

    def put(self, item: Item) -> None:
        """Put something to the model, when the running turn has ended.

        Raises:
            ToolError: too much waits for that already.
        """
        if not self.running:
            self._begin([item])
            return
        if len(self._inbox) >= MOST_WAITING:
            raise ToolError(
                f"{MOST_WAITING} prompts wait for the next turn of session {self.session.id}.",
                hint="Wait for it with agent_wait.",
            )
        self._inbox.append(item)
        self.tend()

    def ask(self, question: Question) -> None:
        """Put a question to the model, in the running turn if there is one.

        Raises:
            ToolError: too many are open already.
        """
        if len(self._questions) >= MOST_QUESTIONS:
            raise ToolError(
                f"{MOST_QUESTIONS} questions to session {self.session.id} have no answer yet.",
                hint="Wait for it with agent_wait.",
            )
        self._questions[question.id] = question
        if self.running:
            # In this order: whoever sees it in the transcript may count on the turn's next request having it.
            self.runner.tell(question.item)
            self._write((question.item.line,))
        else:
            self._begin([question.item])

    def answer(self, ticket: Ticket, question_id: str, text: str) -> None:
        """Pass on the agent's answer to a question."""
        question = self._questions.pop(question_id, None)
        if question is None:
            self._tell(Told(ticket, replies.no_question(question_id)))
            return
        self._tell(Told(ticket, replies.passed_on(question_id)))
        if question.waiter is not None:
            self._tell(Told(question.waiter.ticket, replies.answered(self.session, text)))

    def watch(self, waiter: Waiter) -> None:
        """Wait until nothing goes on."""
        if self.running:
            self._idle.append(waiter)
            self.tend()
        else:
            self._tell(Told(waiter.ticket, replies.standing(self.session)))

    def cancel(self, ticket: Ticket) -> None:
        """End the running turn; what waits for the next one begins it."""
        if self.running:
            self._cancelling.append(ticket)
            self.runner.stop()
        else:
            self._tell(Told(ticket, replies.nothing_to_cancel(self.session)))

    def notice(self, text: str, *, wake: bool) -> None:
        """Let the model know something in its next turn; ``wake`` begins one for it."""
        self.session = replace(self.session, unread=(*self.session.unread, text)[-MOST_UNREAD:], updated_at=self._now())
        self._write((Line(kind=Kind.NOTICE, text=text),))
        self._awake = self._awake or (wake and self.session.woken < MOST_WOKEN)
        if self._awake and not self.running:
            self._begin([])

    def interrupt(self, why: str) -> None:
        """End the running turn because the daemon stops."""
        self._cut = why
        if self.running:
            self.runner.stop()

    def tend(self) -> None:
        """Tell those who have waited long enough how things stand."""
        now = self._clock.monotonic()
        late = [waiter for waiter in self._waiters() if waiter.until <= now]
        if not late:
            return
        self._turn = [waiter for waiter in self._turn if waiter not in late]
        self._idle = [waiter for waiter in self._idle if waiter not in late]
        self._inbox = [replace(item, waiter=None) if item.waiter in late else item for item in self._inbox]
        for question in self._questions.values():
            if question.waiter in late:
                self._questions[question.id] = question.unwatched()
        self._tell(*(Told(waiter.ticket, replies.standing(self.session)) for waiter in late))

    # --- what becomes of the turn -----------------------------------------------------------------------------------

    def stepped(self, step: Step) -> None:
        """Take note of what the turn has done."""
        self.session = replace(self.session, spent=self.session.spent + step.spent, turn=self.session.turn + step.spent)
        self._write(step.lines, step.messages, step.spent)
        for line in step.lines[-1:]:
            for waiter in self._waiters():
                waiter.tell.progress(self.session.entries, None, f"{line.kind} {line.by or ''}: {line.text[:100]}")

    def ended(self, ended: Ended) -> None:
        """Take note of the turn's end, and begin the next one if something waits for it."""
        if self._cut is not None and ended.outcome is Outcome.CANCELLED:
            ended = replace(ended, outcome=Outcome.INTERRUPTED, answer=self._cut)
        self._close(ended.outcome, ended.answer)
        done = ended.outcome is Outcome.DONE
        text = str(ended.outcome) if done else f"{ended.outcome}: {ended.answer}"
        self._write((Line(kind=Kind.END, text=text, is_error=not done),))
        self._tell(*(Told(waiter.ticket, replies.ended(self.session)) for waiter in self._turn))
        self._tell(*(Told(ticket, replies.cancelled(self.session)) for ticket in self._cancelling))
        self._turn, self._cancelling = [], []
        self._look_after_questions(ended)
        waiting, self._inbox = self._inbox, []
        if waiting or (self._awake and self.session.unread):
            self._begin(waiting)
        else:
            self._rest()

    def _look_after_questions(self, ended: Ended) -> None:
        """Ask again what this turn left open, and give up what it was asked twice."""
        unread = {item.line.id: item for item in ended.unread}
        for question in list(self._questions.values()):
            if question.id in unread:
                self._inbox.insert(0, unread[question.id])
            elif ended.outcome is Outcome.DONE and not question.reminded:
                self._questions[question.id] = question.again()
                self._inbox.append(question.again().item)
            else:
                self._give_up(question)

    def _give_up(self, question: Question) -> None:
        del self._questions[question.id]
        if question.waiter is not None:
            self._tell(Told(question.waiter.ticket, replies.unanswered(self.session)))

    def _begin(self, items: list[Item]) -> None:
        lines = tuple(item.line for item in items)
        waiters = [item.waiter for item in items if item.waiter is not None]
        woken = 0 if items else self.session.woken + 1
        self.session = replace(self.session, turns=self.session.turns + 1, woken=woken, updated_at=self._now())
        self._awake = False
        try:
            self.runner.admit()
        except A2mcpError as error:
            self._refuse(lines, waiters, error)
            return
        prompt = "\n\n".join((*self.session.unread, *(item.read for item in items)))
        self.session = replace(self.session, state=State.RUNNING, unread=(), turn=Spent())
        self._turn = waiters
        self._write(lines)
        self.tend()  # Who would wait for nothing is answered at once.
        # The last step: from here on the turn, and whoever is told of it, may be on another thread.
        self.runner.begin(prompt)

    def _refuse(self, lines: tuple[Line, ...], waiters: list[Waiter], error: A2mcpError) -> None:
        """A refused turn is a turn: what was asked, and why nothing came of it, are in the transcript."""
        self._close(Outcome.REFUSED, str(error))
        self._write((*lines, Line(kind=Kind.END, text=f"{Outcome.REFUSED}: {error}", is_error=True)))
        self._tell(*(Told(waiter.ticket, replies.ended(self.session)) for waiter in waiters))
        for question in list(self._questions.values()):
            self._give_up(question)
        self._rest()

    def _rest(self) -> None:
        self._tell(*(Told(waiter.ticket, replies.standing(self.session)) for waiter in self._idle))
        self._idle = []

    # --- small steps ------------------------------------------------------------------------------------------------

    def _close(self, outcome: Outcome, answer: str) -> None:
        self.session = replace(self.session, state=State.IDLE, outcome=outcome, answer=answer, updated_at=self._now())

    def _waiters(self) -> list[Waiter]:
        queued = [item.waiter for item in self._inbox if item.waiter is not None]
        asking = [question.waiter for question in self._questions.values() if question.waiter is not None]
        return [*self._turn, *self._idle, *queued, *asking]

    def _write(self, lines: tuple[Line, ...], messages: tuple[bytes, ...] = (), spent: Spent = _NOTHING) -> None:
        """Number the lines and keep them, without the secrets in them: a transcript is read by many."""
        now, seq = self._now(), self.session.entries
        entries = tuple(
            Entry(
                seq=number, at=now, kind=line.kind, text=mask(line.text), by=line.by, id=line.id, is_error=line.is_error
            )
            for number, line in enumerate(lines, seq + 1)
        )
        self.session = replace(self.session, entries=seq + len(lines))
        self.runner.keep(Happened(session=self.session, entries=entries, messages=messages, spent=spent))

    def _tell(self, *told: Told) -> None:
        if told:
            self.runner.answer(told)

    def _now(self) -> str:
        return iso(self._clock.now())
