"""One session without threads: what is put to the model when, who is answered when, and that nobody is forgotten."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2mcp.errors import CannotInfer, ToolError
from a2mcp.inference import conversation as module
from a2mcp.inference.conversation import Conversation
from a2mcp.inference.ledger import Spent
from a2mcp.inference.questions import Question
from a2mcp.inference.runner import Ended, Item, Line, Step, Told, Waiter
from a2mcp.inference.transcript import Entry, Kind, Outcome, new_session
from a2mcp.inference.transcripts import Happened
from a2mcp.types import CallId, SessionId


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 11, 30, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


class Ticket:
    def __init__(self, name: str) -> None:
        self.call_id = CallId(name)
        self.session_id = None


class Runner:
    """Remembers what it is asked to do."""

    def __init__(self) -> None:
        self.refusal: Exception | None = None
        self.begun: list[str] = []
        self.heard: list[Item] = []
        self.stops = 0
        self.entries: list[Entry] = []
        self.facts: Any = None
        self.told: dict[str, Any] = {}

    def admit(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    def begin(self, prompt: str) -> None:
        self.begun.append(prompt)

    def tell(self, item: Item) -> None:
        self.heard.append(item)

    def stop(self) -> None:
        self.stops += 1

    def keep(self, happened: Happened) -> None:
        self.entries += happened.entries
        self.facts = happened.session

    def answer(self, told: tuple[Told, ...]) -> None:
        for one in told:
            assert one.ticket.call_id not in self.told, "a call is answered once"
            self.told[one.ticket.call_id] = one.result


class Played:
    """A conversation with that runner."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.runner = Runner()
        facts = new_session(SessionId("a1"), "2026-11-30T12:00:00.000Z", title="t", client=None, model=None)
        self.it = Conversation(facts, self.runner, self.clock)
        self.names: list[str] = []

    def waiter(self, wait: float = 60.0) -> Waiter:
        self.names.append(f"t{len(self.names)}")
        return Waiter(ticket=Ticket(self.names[-1]), until=self.clock.seconds + wait)

    def put(self, text: str, wait: float = 60.0) -> str:
        self.it.put(Item(line=Line(kind=Kind.PROMPT, text=text), waiter=self.waiter(wait)))
        return self.names[-1]

    def ask(self, text: str, wait: float = 60.0) -> str:
        name = f"q{len(self.names)}"
        self.it.ask(Question(id=name, text=text, by=None, waiter=self.waiter(wait)))
        return name

    def end(self, outcome: Outcome = Outcome.DONE, answer: str = "fine", unread: tuple[Item, ...] = ()) -> None:
        self.it.ended(Ended(outcome=outcome, answer=answer, unread=unread))

    def said(self, ticket: str) -> str:
        return str(self.runner.told[ticket].content[0].text)

    @property
    def kinds(self) -> list[Kind]:
        return [entry.kind for entry in self.runner.entries]


@pytest.fixture
def played() -> Played:
    return Played()


def test_a_prompt_begins_a_turn_and_is_answered_at_its_end(played: Played) -> None:
    """Source: issue, point 2."""
    ticket = played.put("go")
    assert (played.runner.begun, played.it.running) == (["go"], True)
    played.it.stepped(Step(lines=(Line(kind=Kind.SAID, text="hm"),), spent=Spent(requests=1)))
    assert ticket not in played.runner.told
    played.end(answer="done it")

    assert played.said(ticket).startswith("done it")
    assert played.kinds == [Kind.PROMPT, Kind.SAID, Kind.END]
    assert [entry.seq for entry in played.runner.entries] == [1, 2, 3]
    assert played.it.session.spent == Spent(requests=1)


def test_what_comes_during_a_turn_waits_and_is_put_together(played: Played) -> None:
    """Ours: a turn is given all that waits for it at once."""
    first, second, third = played.put("1"), played.put("2"), played.put("3")
    played.end(answer="one")
    assert played.said(first).startswith("one")
    assert played.runner.begun == ["1", "2\n\n3"]
    played.end(answer="both")

    assert played.said(second).startswith("both")
    assert played.said(third).startswith("both")


def test_a_wait_of_nothing_is_answered_at_once(played: Played) -> None:
    """Source: issue, point 2: wait hands back a handle."""
    assert "still running" in played.said(played.put("go", wait=0))
    assert "still running" in played.said(played.put("more", wait=0))
    played.it.watch(played.waiter(wait=0))
    assert "still running" in played.said(played.names[-1])


def test_who_has_waited_long_enough_is_told_how_things_stand_and_the_turn_goes_on(played: Played) -> None:
    """Source: issue, point 2: wait with a deadline."""
    ticket = played.put("go", wait=5)
    played.clock.seconds = 4.9
    played.it.tend()
    assert ticket not in played.runner.told
    played.clock.seconds = 5.0
    played.it.tend()

    assert "still running" in played.said(ticket)
    assert played.it.running
    played.end()


def test_who_waits_for_rest_waits_for_all_that_is_queued(played: Played) -> None:
    """Source: issue, point 2: agent_wait."""
    played.put("1")
    played.it.watch(played.waiter())
    watching = played.names[-1]
    played.put("2")
    played.end()
    assert watching not in played.runner.told
    played.end(answer="last")

    assert played.said(watching).startswith("last")


def test_cancelling_ends_the_turn_and_keeps_what_waits(played: Played) -> None:
    """Source: the remote DSH's cancel: stop the turn, keep the inbox."""
    first, second = played.put("1"), played.put("2")
    cancelling = Ticket("c")
    played.it.cancel(cancelling)
    assert played.runner.stops == 1
    played.end(Outcome.CANCELLED, "cut")

    assert played.runner.told[first].is_error
    assert not played.runner.told[CallId("c")].is_error
    assert second not in played.runner.told
    assert played.runner.begun == ["1", "2"]


def test_a_refused_turn_is_a_turn_in_the_transcript(played: Played) -> None:
    """Source: seed, "what it gives up": a denied turn is a turn."""
    played.runner.refusal = CannotInfer("not now")
    ticket = played.put("go")

    assert played.runner.told[ticket].is_error
    assert played.runner.begun == []
    assert played.kinds == [Kind.PROMPT, Kind.END]
    assert (played.it.session.outcome, played.it.session.turns) == (Outcome.REFUSED, 1)


def test_a_question_is_heard_by_the_running_turn_and_answered_before_its_end(played: Played) -> None:
    """Source: issue, point 2: agent_ask, agent_answer."""
    played.put("go")
    question = played.ask("how far?")
    asking = played.names[-1]
    assert question in played.runner.heard[0].read
    played.it.answer(Ticket("a"), question, "half")
    assert played.said(asking).startswith("half")
    played.it.answer(Ticket("b"), question, "again")

    assert played.runner.told["b"].is_error
    played.end()
    assert len(played.runner.begun) == 1


def test_a_question_that_the_turn_never_read_begins_the_next(played: Played) -> None:
    """Ours: nothing is lost between two turns."""
    played.put("go")
    question = played.ask("how far?")
    played.end(unread=tuple(played.runner.heard))

    assert question in played.runner.begun[1]
    assert "no answer yet" not in played.runner.begun[1]


def test_a_forgotten_question_is_asked_once_more_and_then_given_up(played: Played) -> None:
    """Ours: whoever asked is not left waiting."""
    question = played.ask("how far?")
    asking = played.names[-1]
    played.end(answer="la la")
    assert question in played.runner.begun[1]
    assert asking not in played.runner.told
    played.end(answer="la la la")

    assert played.runner.told[asking].is_error
    assert "la la la" in played.said(asking)
    assert len(played.runner.begun) == 2


def test_what_the_host_tells_waits_for_a_turn_unless_it_is_to_wake(played: Played) -> None:
    """Source: issue, point 3."""
    played.it.notice("job 1 ended", wake=False)
    assert played.runner.begun == []
    assert played.runner.facts.unread == ("job 1 ended",)
    played.it.notice("job 2 ended", wake=True)

    assert played.runner.begun == ["job 1 ended\n\njob 2 ended"]
    assert played.runner.facts.unread == ()


def test_a_session_that_only_wakes_itself_falls_asleep(played: Played) -> None:
    """Ours: what a turn starts may end and wake the session again, without end."""
    for number in range(module.MOST_WOKEN + 5):
        played.it.notice(f"job {number}", wake=True)
        if played.it.running:
            played.end()
    assert len(played.runner.begun) == module.MOST_WOKEN
    assert len(played.runner.facts.unread) == 5

    played.put("hello")
    assert "job 24" in played.runner.begun[-1]
    played.end()
    played.it.notice("one more", wake=True)
    assert played.runner.begun[-1] == "one more"


def test_notices_and_prompts_are_bounded(played: Played) -> None:
    """STYLE 12: every buffer has a chosen size."""
    for number in range(module.MOST_UNREAD + 10):
        played.it.notice(f"job {number}", wake=False)
    assert len(played.runner.facts.unread) == module.MOST_UNREAD
    assert played.runner.facts.unread[0] == "job 10"
    for number in range(module.MOST_WAITING + 1):
        played.put(str(number))
    with pytest.raises(ToolError, match="wait for the next turn"):
        played.put("one too many")


def test_the_end_of_the_daemon_ends_the_turn_as_that(played: Played) -> None:
    """Source: issue, point 2: transcripts survive a restart."""
    first, second = played.put("1"), played.put("2")
    played.it.interrupt("going down")
    played.runner.refusal = CannotInfer("the daemon is stopping")
    played.end(Outcome.CANCELLED, "cut")

    assert "going down" in played.said(first)
    assert "stopping" in played.said(second)
    assert next(entry.text for entry in played.runner.entries if entry.kind is Kind.END) == "interrupted: going down"


def test_a_transcript_shows_no_secret_and_the_model_reads_what_was_said(played: Played) -> None:
    """Ours: a transcript is read by many."""
    played.put("log in with password=hunter2hunter2")

    assert "hunter2hunter2" in played.runner.begun[0]
    assert "hunter2hunter2" not in played.runner.entries[0].text


ACTIONS = st.lists(
    st.sampled_from(
        ("put", "ask", "answer", "watch", "cancel", "notice", "wake", "step", "end", "fail", "unread", "late")
    )
    | st.sampled_from(("refuse", "admit")),
    max_size=40,
)


@settings(max_examples=300)
@given(ACTIONS)
def test_whatever_happens_everybody_is_answered_once_and_the_transcript_has_no_holes(actions: list[str]) -> None:
    """Ours: the promise of a session, over any order of what may happen to it."""
    played = Played()
    extra: list[str] = []
    questions: list[str] = []
    for action in actions:
        _act(played, action, extra, questions)
    played.runner.refusal = CannotInfer("over")
    while played.it.running:
        played.end(Outcome.FAILED, "over")
    played.clock.seconds += 1000
    played.it.tend()

    assert set(played.runner.told) == {*played.names, *extra}
    assert [entry.seq for entry in played.runner.entries] == list(range(1, len(played.runner.entries) + 1))
    assert played.kinds.count(Kind.END) == played.it.session.turns
    assert played.runner.facts is None or played.runner.facts == played.it.session


def _act(played: Played, action: str, extra: list[str], questions: list[str]) -> None:
    match action:
        case "put":
            played.put("p", wait=len(played.names) % 3)
        case "ask":
            questions.append(played.ask("q"))
        case "answer" if questions:
            extra.append(f"x{len(extra)}")
            played.it.answer(Ticket(extra[-1]), questions[-1], "a")
        case "watch":
            played.it.watch(played.waiter())
        case "cancel":
            extra.append(f"x{len(extra)}")
            played.it.cancel(Ticket(extra[-1]))
        case "notice" | "wake":
            played.it.notice("n", wake=action == "wake")
        case "step" if played.it.running:
            played.it.stepped(Step(lines=(Line(kind=Kind.SAID, text="s"),), spent=Spent(requests=1)))
        case "end" | "fail" | "unread" if played.it.running:
            unread = tuple(played.runner.heard[-1:]) if action == "unread" else ()
            played.runner.heard.clear()
            played.end(Outcome.FAILED if action == "fail" else Outcome.DONE, unread=unread)
        case "late":
            played.clock.seconds += 2
            played.it.tend()
        case "refuse":
            played.runner.refusal = CannotInfer("not now")
        case "admit":
            played.runner.refusal = None


def test_a_session_has_only_so_many_open_questions(played: Played) -> None:
    """Ours: every buffer has a size, and nobody need wait for the answer to what he asks."""
    played.put("go")
    for _ in range(module.MOST_QUESTIONS):
        played.ask("what?", wait=0)
    with pytest.raises(ToolError, match="have no answer yet"):
        played.ask("what?")
    assert len(played.runner.heard) == module.MOST_QUESTIONS

    played.end(Outcome.CANCELLED)
    played.ask("what?")
    assert played.it.running
